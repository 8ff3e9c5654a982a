"""Deeds in words."""

from collections.abc import Mapping
from typing import Any

from watcher_site.messages import cut


def deed_in_words(deed: str) -> str:
    """Return a deed as people say it: ``action_plan.start`` is "start action plan"."""
    thing, _, verb = deed.partition(".")
    return f"{verb} {thing}".replace("_", " ").strip()


def details_in_words(details: Mapping[str, Any]) -> str:
    """Return the details of a deed in one line: ``count: 2, name: web → shop``; those that are empty are left out."""
    told = [
        f"{name.replace('_', ' ')}: {value_in_words(value)}" for name, value in details.items() if value is not None
    ]
    return cut(", ".join(told))


def value_in_words(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {"from", "to"}:
        return f"{value_in_words(value['from'])} → {value_in_words(value['to'])}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(value_in_words, value)) or "none"
    return "none" if value is None or value in ("", {}) else str(value)
