"""Texts for users, including stored ones."""

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    Text = str | _StrPromise
else:
    Text = str
"""A text, or a lazy text that is translated when it is shown."""

# Parts of error messages of libraries that identify machines: addresses, with their paths and queries, and files.
URL = re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>]+")
ENDPOINT = re.compile(
    r"(?<= at )(?=[^\s:]*[a-zA-Z.\[])[\w.\[\]:-]+:\d{2,5}\b"
    r"|(?<= at )[\w-]+(?:\.[\w-]+)+(?=:\s)"
    r"|\b(?:[\w-]+\.)+[a-zA-Z][\w-]*:\d{2,5}\b"
    r"|\bhost='[^']*', port=\d+"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\w.]*\w)"
)
FILE = re.compile(r"(?<![\w./:~-])~?(?:/[\w.@+~-]+){2,}")
# Control characters, and characters that change the direction of text.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
UUIDS = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
STATUS_MESSAGE_LENGTH = 255


def cut(text: str, length: int = STATUS_MESSAGE_LENGTH) -> str:
    """Return a text cut to ``length`` characters including its ellipsis, at a word boundary if one is near.

    UUIDs are not cut, and words not at hyphens. This is for the site's own messages, and for reasons of marks. Other
    text of users is refused, not cut, when it is too long.
    """
    text = without_controls(text)
    if len(text) <= length:
        return text
    # Words beyond four times the length cannot be part of the result.
    shortened = textwrap.shorten(text[: 4 * length], width=length, placeholder="…", break_on_hyphens=False)
    if len(shortened) > length // 2:
        return shortened
    end = length - 1
    inside = (match.start() for match in UUIDS.finditer(text) if match.start() < end < match.end())
    return text[: next(inside, end)].rstrip() + "…"


def without_controls(text: str) -> str:
    """Return a text without control characters and changes of its direction, except tabs and line ends."""
    return CONTROLS.sub("", text)


def without_places(text: str) -> str:
    """Return a text without URLs, endpoints and paths of files, which only the log may contain."""
    # Most texts have none of these, and searching for a character is much faster than for a pattern.
    if "://" in text:
        text = URL.sub("(an address)", text)
    if ":" in text or "." in text or "host='" in text:
        text = ENDPOINT.sub("(an address)", text)
    return FILE.sub("(a file)", text) if "/" in text else text
