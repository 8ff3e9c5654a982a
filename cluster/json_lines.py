"""A parser for JSON files written by hand, whose errors contain the line."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from cluster import messages
from watcher_site.database.text import find_unstorable

Path = Sequence[str | int]

# The maximum digits of an integer. Longer numbers fit in no column, and are read as floats.
MAX_DIGITS = 300


class InvalidValue(Exception):
    """An invalid value in a document, at a path such as ``("servers", 3, "node")``."""

    def __init__(self, path: Path, rule: str) -> None:
        super().__init__(f"{label(path)}: {rule}" if path else rule)
        self.path = tuple(path)


class NotJSON(Exception):
    """A text that is not a JSON document; ``line`` counts from 1."""

    def __init__(self, line: int, rule: str) -> None:
        super().__init__(rule)
        self.line = line


class JSONObject(dict[str, Any]):
    """A JSON object with the last name that it contained twice, if any."""

    repeated: str | None = None

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> "JSONObject":
        members = cls()
        for name, value in pairs:
            if name in members:
                members.repeated = name
            members[name] = value
        return members


def label(path: Path) -> str:
    """Return the text of a path: ``servers[3].node``."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.removeprefix(".")


def parse_document(content: bytes) -> tuple[str, Any]:
    """Return a document as text and as values.

    Raises:
        NotJSON: it is not JSON in UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
        document = json.loads(text, object_pairs_hook=JSONObject.of, parse_int=read_integer)
    except UnicodeDecodeError as problem:
        raise NotJSON(content.count(b"\n", 0, problem.start) + 1, "is not UTF-8 text.") from problem
    except json.JSONDecodeError as problem:
        raise NotJSON(problem.lineno, f"is not JSON: {problem.msg}.") from problem
    except RecursionError as problem:
        raise NotJSON(1, "is nested too deeply.") from problem
    return text, document


def check_values(document: Any) -> None:
    """Raise `InvalidValue` if an object contains a name twice, or a value that the database cannot store."""
    for path, problem in find_unstorable(document):
        raise InvalidValue(path, f"must not contain {problem}.")
    for path in find_repeated(document):
        raise InvalidValue(path, messages.GIVEN_TWICE.text)


def read_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


def find_repeated(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, JSONObject) and value.repeated is not None:
        yield (*path, value.repeated)
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield from find_repeated(item, (*path, step))


DECODER = json.JSONDecoder(parse_int=read_integer)


def line_of(text: str, path: Path) -> int:
    """Return the line, from 1, on which the value at a path of a JSON text begins.

    If the last name of the path is missing, it is the line of the object.
    """
    position = skip_blanks(text, 0)
    for step in path:
        # Of several members with the same name, the last one counts, as in `json.loads`.
        position = dict(list_members(text, position)).get(step, position)
    return text.count("\n", 0, position) + 1


def list_members(text: str, position: int) -> Iterator[tuple[str | int, int]]:
    """Yield the name or index of each member of an object or list, and the position of its value."""
    if text[position] not in "{[":
        return
    is_object, position, index = text[position] == "{", skip_blanks(text, position + 1), 0
    while text[position] not in "}]":
        step: str | int = index
        if is_object:
            step, position = DECODER.raw_decode(text, position)
            position = skip_blanks(text, skip_blanks(text, position) + 1)
        yield step, position
        position = skip_blanks(text, DECODER.raw_decode(text, position)[1])
        position = skip_blanks(text, position + 1) if text[position] == "," else position
        index += 1


def skip_blanks(text: str, position: int) -> int:
    while text[position] in " \t\r\n":
        position += 1
    return position
