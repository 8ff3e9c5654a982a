"""Changes that give a server of a stack another description."""

from collections.abc import Mapping, Sequence
from typing import Any

PARTS = ("flavor", "image", "metadata", "availability_zone")


def parts_differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return in which properties two descriptions of a server differ."""
    return [part for part in PARTS if (before.get(part) or None) != (after.get(part) or None)]


def is_changeable(differing: Sequence[str], after: Mapping[str, Any]) -> bool:
    """Return whether a server can be changed in place: its metadata, and by a resize or a rebuild, but not by both."""
    rest = [part for part in differing if part != "metadata"]
    return rest in ([], ["flavor"]) or (rest == ["image"] and bool(after["image"]))
