"""A parser for JSON files that people write: every error names the line."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from watcher_site.database.text import find_unstorable

Path = Sequence[str | int]

# The digits of the longest whole number that is read as one; a longer one has no end that any column could hold.
LONGEST_NUMBER = 300


class Misfit(Exception):
    """A value in a document that breaks a rule, at a path such as ``("servers", 3, "node")``."""

    def __init__(self, path: Path, rule: str) -> None:
        super().__init__(f"{label(path)}: {rule}" if path else rule)
        self.path = tuple(path)


class NotJSON(Exception):
    """A text that is no JSON document; ``line`` counts from 1."""

    def __init__(self, line: int, rule: str) -> None:
        super().__init__(rule)
        self.line = line


class Members(dict[str, Any]):
    """A JSON object that remembers a name which stood in it twice."""

    repeated: str | None = None

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> "Members":
        members = cls()
        for name, value in pairs:
            if name in members:
                members.repeated = name
            members[name] = value
        return members


def label(path: Path) -> str:
    """Return a path as people write it: ``servers[3].node``."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return steps.removeprefix(".")


def parse_document(content: bytes) -> tuple[str, Any]:
    """Return a document as text and as values.

    Raises:
        NotJSON: it is no JSON in UTF-8.
    """
    try:
        text = content.decode("utf-8-sig")
        document = json.loads(text, object_pairs_hook=Members.of, parse_int=read_integer)
    except UnicodeDecodeError as problem:
        raise NotJSON(content.count(b"\n", 0, problem.start) + 1, "is not UTF-8 text.") from problem
    except json.JSONDecodeError as problem:
        raise NotJSON(problem.lineno, f"is not JSON: {problem.msg}.") from problem
    except RecursionError as problem:
        raise NotJSON(1, "is nested too deeply.") from problem
    return text, document


def check_values(document: Any) -> None:
    """Raise `Misfit` if a name stands twice in one object, or a value can be stored nowhere."""
    for path, nature in find_unstorable(document):
        raise Misfit(path, f"must not hold {nature}.")
    for path in find_repeated(document):
        raise Misfit(path, "stands there twice.")


def read_integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_NUMBER else float(digits)


def find_repeated(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, Members) and value.repeated is not None:
        yield (*path, value.repeated)
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield from find_repeated(item, (*path, step))


DECODER = json.JSONDecoder(parse_int=read_integer)


def line_of(text: str, path: Path) -> int:
    """Return the line, from 1, on which the value at a path of a JSON text begins.

    A path may end at a name that is not there: then it is the line of the object that lacks it.
    """
    position = skip_blanks(text, 0)
    for step in path:
        # The last of several members of one name is the one that counts, as in `json.loads`.
        position = dict(members(text, position)).get(step, position)
    return text.count("\n", 0, position) + 1


def members(text: str, position: int) -> Iterator[tuple[str | int, int]]:
    """Yield the name or index of each member of the object or list that begins here, and where its value begins."""
    if text[position] not in "{[":
        return
    named, position, index = text[position] == "{", skip_blanks(text, position + 1), 0
    while text[position] not in "}]":
        step: str | int = index
        if named:
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
