"""Validation of texts and JSON that every supported database can store."""

import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

from watcher_site.refusals import Invalid

DEEPEST = 50
# NUL, which PostgreSQL refuses, and lone surrogates, which UTF-8 does not have.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def require_storable(field: str, value: Any) -> None:
    """Raise `Invalid` with the field for NUL characters, lone surrogates, infinite numbers or too deep nesting."""
    for path, problem in find_unstorable(value):
        raise Invalid(f"{field}{''.join(f'.{step}' for step in path)}: must not contain {problem}.")


def find_unstorable(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the path and a description of each part of a JSON value that cannot be stored."""
    if len(path) > DEEPEST:
        yield (), f"values nested deeper than {DEEPEST} levels"
    elif isinstance(value, dict):
        for key, item in value.items():
            if UNSTORABLE.search(key):
                yield path, f"{describe_unstorable(key)} in a name"
            else:
                yield from find_unstorable(item, (*path, key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from find_unstorable(item, (*path, position))
    elif isinstance(value, str) and UNSTORABLE.search(value):
        yield path, describe_unstorable(value)
    elif isinstance(value, float) and not isfinite(value):
        yield path, "infinite or undefined numbers"


def make_storable(text: str, length: int | None = None) -> str:
    """Return a text without NUL characters, and with ? in place of lone surrogates.

    Args:
        length: the length of the column, to which the text is cut.
    """
    return text.replace("\0", "").encode(errors="replace").decode()[:length]


def describe_unstorable(text: str) -> str:
    """Return a description of the character in an `UNSTORABLE` text."""
    return "NUL characters" if "\0" in text else "lone surrogates"
