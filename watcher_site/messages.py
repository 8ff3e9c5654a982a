"""Texts for users, including messages that are stored in English and shown in the language of the reader.

API clients match stored messages, so these do not change. Code that stores a message fills a `StoredMessage`; pages
find the message that a stored text was filled from, and fill its translation with the same values. All other texts,
such as those of the cloud and of users, and parts that were cut, are shown unchanged. Messages that clients of
OpenStack match say "instance"; pages say "server" in all languages.
"""

import re
import textwrap
from bisect import insort
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from django.utils.formats import number_format
from django.utils.translation import gettext

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
INSTANCE = re.compile(r"\b(?:([Aa])n )?([Ii])nstance\b")
SERVERS = {"I": "Server", "i": "server"}
STATUS_MESSAGE_LENGTH = 255
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
# A field, or the path of a value, before the rule that it breaks.
FIELD = re.compile(r"(?P<field>[a-z_]\w*(?:[.\[][\w-]+\]?)*): (?P<rule>.+)", re.DOTALL)
# The patterns of values, by the names of placeholders.
VALUES = {"field": r"[\w.\[\]-]+", "number": r"\d+", "total": r"\d+(?: actions?)?", "uuid": UUIDS.pattern}
ANY_VALUE = ".+?"
# The placeholders of amounts, whose digits pages group.
AMOUNTS = {"amount", "desired", "free", "hours", "least", "limit", "most", "needed", "number", "seconds", "size"}
AMOUNTS |= {"total", "used"}
EVERY_VALUE: Mapping[str, str] = {}
stored_messages: list["StoredMessage"] = []
"""All stored messages in the order of `sort_key`. Of several that match a text, the first is used."""
messages_by_word: dict[str, list["StoredMessage"]] = {"": []}
"""The messages that can match a text with this first word, and with any other under "", in the same order."""


def cut(text: str, length: int = STATUS_MESSAGE_LENGTH) -> str:
    """Return a text cut to ``length`` characters including its ellipsis, at a word boundary if one is near.

    UUIDs are not cut, and words not at hyphens. This is for the site's own messages, and for reasons of marks. Other
    text of users is refused, not cut, when it is too long.
    """
    return shorten(without_controls(text), length)


def shorten(text: str, length: int) -> str:
    """Return a text cut as `cut` does, with its control characters, which pages mark."""
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
    """Return a text without control characters and changes of its direction, except tabs and line ends.

    Messages are stored without them, because clients of the API print messages on terminals, which would execute them.
    The names of objects, which pages show instead of UUIDs in messages, have them, and pages mark them.
    """
    return CONTROLS.sub("", text)


def without_places(text: str) -> str:
    """Return a text without URLs, endpoints and paths of files, which only the log may contain."""
    # Most texts have none of these, and searching for a character is much faster than for a pattern.
    if "://" in text:
        text = URL.sub("(an address)", text)
    if ":" in text or "." in text or "host='" in text:
        text = ENDPOINT.sub("(an address)", text)
    return FILE.sub("(a file)", text) if "/" in text else text


class StoredMessage:
    """An English text with named placeholders, which is marked for translation by ``gettext_noop``."""

    def __init__(
        self, text: str, values: Mapping[str, str] = EVERY_VALUE, **translations: Callable[[str], str]
    ) -> None:
        """Add the message to the table.

        Args:
            values: the patterns of values, by the names of placeholders, if other texts could match the message.
            translations: the functions that translate the values of placeholders. Other values are shown unchanged.
        """
        patterns = {**VALUES, **values}
        self.text, self.translations = text, translations
        parts = PLACEHOLDER.split(text)  # The names of placeholders are between the other parts.
        parts[::2] = [part.replace("%%", "%") for part in parts[::2]]
        self.start, self.end = parts[0], parts[-1]
        opening = self.start if self.start or len(parts) == 1 else values.get(parts[1], "")
        self.lengths = len(opening), len("".join(parts[::2])) + sum(map(len, values.values()))
        parts[::2] = map(re.escape, parts[::2])
        parts[1::2] = [f"(?P<{name}>{patterns.get(name, ANY_VALUE)})" for name in parts[1::2]]
        self.expression = "".join(parts)
        insort(stored_messages, self, key=sort_key)
        self.add_to_index()

    def add_to_index(self) -> None:
        """Add the message to `messages_by_word`."""
        word, separator, _ = self.start.partition(" ")
        if separator or self.start == self.text:
            insort(messages_by_word.setdefault(word, list(messages_by_word[""])), self, key=sort_key)
        else:
            for messages in messages_by_word.values():
                insort(messages, self, key=sort_key)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled expression. A process uses few of the messages, and all of them would delay its start."""
        return re.compile(self.expression, re.DOTALL)

    @property
    def opening(self) -> str:
        """The text before the first placeholder, which clients match."""
        return self.start.rstrip()

    def fill(self, **values: object) -> str:
        """Return the text to store."""
        return self.text % values

    def read(self, text: str) -> dict[str, str] | None:
        """Return the values in a stored text, or None if the text was not filled from this message."""
        match = self.pattern.fullmatch(text) if text.startswith(self.start) else None
        return match.groupdict() if match else None

    @cached_property
    def text_of_pages(self) -> str:
        """The English text in the words of pages."""
        return INSTANCE.sub(lambda match: f"{f'{match[1]} ' if match[1] else ''}{SERVERS[match[2]]}", self.text)

    def translate(self, values: dict[str, str]) -> str:
        """Return the translation with these values, which `read` returned."""
        shown = {name: number_format(value) for name, value in values.items() if name in AMOUNTS and value.isdecimal()}
        shown |= {name: translate(values[name]) for name, translate in self.translations.items()}
        translation = gettext(self.text)
        return (self.text_of_pages if translation == self.text else translation) % (values | shown)


def sort_key(message: StoredMessage) -> tuple[int, int]:
    """Return the key by which messages with a longer text before the first value, and longer messages, come first."""
    opening, length = message.lengths
    return -opening, -length


def find_stored_message(text: str) -> tuple[StoredMessage, dict[str, str]] | None:
    """Return the message that a stored text was filled from, with its values, or None."""
    word = text.partition(" ")[0]
    for message in messages_by_word.get(word, messages_by_word[""]):
        # Most messages differ at the beginning or the end, and calls would take longer than these comparisons.
        if (
            text.startswith(message.start)
            and text.endswith(message.end)
            and (values := message.read(text)) is not None
        ):
            return message, values
    return None


def translate_message(text: str) -> str:
    """Return a stored text in the language of the reader, or unchanged if it is not a `StoredMessage`.

    A message is also found after the name of a field, or before a full stop.
    """
    if found := find_stored_message(text):
        message, values = found
        return message.translate(values)
    if match := FIELD.fullmatch(text):
        return f"{match['field']}: {translate_message(match['rule'])}"
    sentence = text.removesuffix(".")
    return text if sentence == text else f"{translate_message(sentence)}."
