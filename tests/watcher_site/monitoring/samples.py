"""The values of metrics, and their growth within a block."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import REGISTRY


def value_of(name: str, **labels: str) -> float:
    """Return the value of a sample in this process, 0 before it was first counted."""
    return REGISTRY.get_sample_value(name, labels) or 0


class Growth:
    """The growth of a sample within a block."""

    def __init__(self) -> None:
        self.value = 0.0


@contextmanager
def growth_of(name: str, **labels: str) -> Iterator[Growth]:
    growth, before = Growth(), value_of(name, **labels)
    yield growth
    growth.value = value_of(name, **labels) - before
