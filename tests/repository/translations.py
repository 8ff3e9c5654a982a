"""Write the texts of the pages into the catalogue of each translation: ``python -m tests.repository.translations``.

New texts come without a translation, and texts that are no longer used are removed.
`tests.watcher_site.web.test_translations` fails until each text has its translation.
"""

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import django
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_python
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

from watcher_site import plugins

ROOT = Path(__file__).resolve().parents[2]
LOCALE = ROOT / "watcher_site" / "locale"
FUNCTIONS = ("gettext", "gettext_lazy", "gettext_noop", "_", "ngettext", "ngettext_lazy", "pgettext", "pgettext_lazy")
OF_TEMPLATE = re.compile(r"(?<![\w.])(?:n?p?gettext|_)\(")
# Key of a text: its context, if any, and its singular with its plural, if any.
Key = tuple[str | None, str | tuple[str, str]]


def catalogue_of(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "django.po"


def languages() -> list[str]:
    return sorted(path.name for path in LOCALE.iterdir() if catalogue_of(path.name).exists())


def find_texts() -> set[Key]:
    """Return the texts that the code and the templates mark as translatable."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "templates/*.html"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found: set[Key] = set()
    for name in files:
        path = ROOT / name
        if name.startswith("tests/") or "/migrations/" in name or not path.exists():
            continue
        source = path.read_text()
        if name.endswith(".html"):
            found |= set(texts_of_template(source, name))
        elif "gettext" in source:
            found |= set(texts_of_code(source))
    # A text that equals a singular is the same message.
    singulars = {(context, text[0]) for context, text in found if isinstance(text, tuple)}
    return (found - singulars) | {(None, text) for text in find_descriptions()}


def find_descriptions() -> set[str]:
    """Return the descriptions of policies, of their properties, and of the parameters of strategies, for forms."""
    policies, strategies = (plugins.load(table).values() for table in ("POLICY_TYPES", "STRATEGIES"))
    schemas = [kind.schema for kind in (*policies, *strategies)]
    return {policy.description for policy in policies} | {
        text for schema in schemas for text in descriptions_in(schema)
    }


def descriptions_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for part in schema:
            yield from descriptions_in(part)
    elif isinstance(schema, dict):
        if isinstance(text := schema.get("description"), str):
            yield text
        for part in schema.values():
            yield from descriptions_in(part)


def texts_of_code(source: str) -> Iterator[Key]:
    for _, function, found, _ in extract_python(BytesIO(source.encode()), FUNCTIONS, [], {"encoding": "utf-8"}):
        texts = [text for text in (found if isinstance(found, tuple) else (found,)) if text]
        if texts:
            yield key_of(function or "", texts)


def texts_of_template(source: str, name: str) -> Iterator[Key]:
    calls = templatize(source, origin=name)
    for call in OF_TEMPLATE.finditer(calls):
        yield key_of(call[0].rstrip("("), read_strings(calls[call.end() :]))


def read_strings(text: str) -> list[str]:
    """Return the strings that a list of arguments begins with."""
    strings = []
    while literal := re.match(r"""\s*(u?'(?:[^'\\]|\\.)*'|u?"(?:[^"\\]|\\.)*")\s*,?""", text):
        strings.append(ast.literal_eval(literal[1]))
        text = text[literal.end() :]
    return strings


def key_of(function: str, texts: list[str]) -> Key:
    context = texts.pop(0) if "pgettext" in function else None
    return context, (texts[0], texts[1]) if function.startswith("n") and len(texts) > 1 else texts[0]


def read_catalogue(language: str) -> Catalog:
    with catalogue_of(language).open("rb") as file:
        return read_po(file, locale=language)


def key_of_message(message: Message) -> Key:
    return message.context, message.id if isinstance(message.id, str) else (message.id[0], message.id[1])


def update(language: str) -> None:
    """Add the texts without a translation to a catalogue, and remove the texts that are no longer used."""
    old, texts = read_catalogue(language), find_texts()
    new = Catalog(
        language,
        header_comment=old.header_comment,
        fuzzy=False,
        project=old.project,
        version=old.version,
        creation_date=old.creation_date,
    )
    known = {key_of_message(message): message for message in old if message.id}
    for context, text in sorted(texts, key=lambda key: (str(key[1]).casefold(), str(key))):
        message = known.get((context, text))
        new.add(text, message.string if message else None, context=context)
    with catalogue_of(language).open("wb") as file:
        write_po(file, new, width=110)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    for one in languages():
        update(one)
