"""Places for a few primary keys in statements that are composed once a process."""

from collections.abc import Sequence
from typing import Any

from watcher_site.database.statements import Placeholder

KEYS: list[Any] = [Placeholder(f"key{number}") for number in range(8)]
OTHER_KEYS: list[Any] = [Placeholder(f"other_key{number}") for number in range(8)]


def fill(keys: Sequence[int], places: Sequence[Placeholder] = KEYS) -> dict[str, int]:
    """Give every placeholder a value: the last key stands for those that are left over."""
    return {place.name: key for place, key in zip(places, [*keys, *[keys[-1]] * len(places)], strict=False)}
