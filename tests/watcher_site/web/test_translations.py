"""The catalogues of the translations have every text of the pages."""

import re

import pytest
from babel.messages.catalog import Message

from tests.repository.translations import find_texts, key_of_message, languages, read_catalogue

PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w*\}|</?\w+")


def parts(text: str | tuple[str, ...] | None) -> list[str]:
    return [text] if isinstance(text, str) else list(text or ())


def messages_of(language: str) -> list[Message]:
    return [message for message in read_catalogue(language) if message.id]


@pytest.mark.parametrize("language", languages())
def test_catalogue_has_exactly_the_texts_of_the_pages(language: str) -> None:
    """To add texts: ``python -m tests.repository.translations``, then translate the empty ones."""
    assert {key_of_message(message) for message in messages_of(language)} == find_texts()


@pytest.mark.parametrize("language", languages())
def test_every_text_of_a_catalogue_is_translated(language: str) -> None:
    empty = [message.id for message in messages_of(language) if not all(parts(message.string)) or message.fuzzy]
    assert empty == []


@pytest.mark.parametrize("language", languages())
def test_translation_has_the_placeholders_and_tags_of_its_text(language: str) -> None:
    different = [
        message.id
        for message in messages_of(language)
        for number, text in enumerate(parts(message.string))
        if set(PLACEHOLDER.findall(text)) != set(PLACEHOLDER.findall(parts(message.id)[-1 if number else 0]))
    ]
    assert different == []
