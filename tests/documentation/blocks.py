"""The code blocks of README.md and docs/, which tests read by the page and the heading above them.

A test that reads a block with these functions, or a fixture that calls them, names the page and the heading as the
first two arguments of the call. `tests/documentation/test_blocks.py` finds the blocks that no test reads.
"""

import re
from collections.abc import Iterator
from functools import cache
from textwrap import dedent
from typing import NamedTuple

from tests.processes import ROOT

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
PART = re.compile(
    r"^(?P<heading>#+ [^\n]+)$|^ *```(?P<language>[^\n]*)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A fenced block: its place, the headings above it, its language, and its text without indentation."""

    page: str
    line: int
    headings: tuple[str, ...]
    language: str
    text: str


@cache
def all_blocks(page: str) -> list[Block]:
    """Return the code blocks of a page. Directives of Sphinx are not included."""
    return [block for block in parse(page) if not block.language.startswith("{")]


def parse(page: str) -> Iterator[Block]:
    source = (ROOT / page).read_text()
    headings: list[str] = []
    for part in PART.finditer(source):
        if heading := part["heading"]:
            headings = [above for above in headings if level(above) < level(heading)] + [heading]
        else:
            line = source.count("\n", 0, part.start()) + 1
            yield Block(page, line, tuple(headings), part["language"], dedent(part["text"]))


def level(heading: str) -> int:
    return len(heading.partition(" ")[0])


def find_blocks(page: str, heading: str, language: str = "sh", number: int | None = None) -> list[Block]:
    """Return the blocks of a section and of its subsections, or the one of them with a number from 0.

    Raises: `LookupError` if the section has none.
    """
    found = [block for block in all_blocks(page) if heading in block.headings and block.language == language]
    if not found:
        raise LookupError(f"{page} has no block of {language or 'text'} below {heading!r}.")
    return found if number is None else [found[number]]


def read_text(page: str, heading: str, language: str = "sh", number: int | None = None) -> str:
    return "".join(block.text for block in find_blocks(page, heading, language, number))
