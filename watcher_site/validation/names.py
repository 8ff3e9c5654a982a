"""Names that people give to objects: the rules for them, and looking objects up by name."""

from collections.abc import Collection
from contextlib import suppress
from typing import Any
from unicodedata import category
from uuid import UUID

from watcher_site.database.text import judge_text
from watcher_site.refusals import Invalid

# Control characters, format characters such as those that turn the direction of writing round, and breaks of lines.
UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})

# No column of names is longer; SQLite refuses to look for texts that are much longer.
LONGEST_NAME = 255


def find_named(records: Any, identifier: str) -> Any:
    """Filter a queryset by UUID, or by name ignoring case."""
    if judge_text(identifier) or len(identifier) > LONGEST_NAME:
        return records.none()
    try:
        return records.filter(uuid=UUID(identifier))
    except ValueError:
        return records.filter(name__iexact=identifier)


def require_seen(field: str, text: str) -> None:
    """Raise `Invalid`, naming the field, for a text with characters that nobody sees."""
    for character in text:
        if category(character) in UNSEEN:
            raise Invalid(f"{field}: must hold no control or format characters, and holds U+{ord(character):04X}.")


def require_addressable_name(name: str, reserved: Collection[str]) -> None:
    """Raise `Invalid` for a name that nothing could be got by: a path would take it for something else."""
    if "/" in name or name.endswith(".json") or name.lower() in reserved:
        raise Invalid(f"name: must not hold a slash, end in .json, or be one of {', '.join(reserved)}.")
    with suppress(ValueError):
        UUID(name)
        raise Invalid("name: must not be a UUID.")
