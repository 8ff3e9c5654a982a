"""The parts that the filters of all apps share."""

from collections.abc import Iterable


def make_choices(values: Iterable[str]) -> list[tuple[str, str]]:
    """Return choices that read as they are stored and as the API has them, ``SUCCEEDED`` and not "Succeeded"."""
    return [(value, value) for value in values]
