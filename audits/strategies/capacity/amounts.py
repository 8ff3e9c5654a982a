"""Amounts of capacity: vcpus, MB of memory and GB of disk, always in this order."""

from collections.abc import Sequence
from math import ceil, inf
from typing import NamedTuple

from audits.strategies.placement import Amounts, Place
from cluster.snapshot import ServerSnapshot


def amounts_of(server: ServerSnapshot) -> Amounts:
    return server.vcpus, server.memory, server.disk


def missing(place: Place, server: ServerSnapshot) -> Amounts:
    """Return what a node lacks for a server to go there."""
    return tuple(max(wanted - free, 0) for wanted, free in zip(amounts_of(server), place.free, strict=True))


class Usefulness(NamedTuple):
    """The usefulness of moving a server away: best if it is sufficient alone, and of these the smallest."""

    suffices: bool
    rank: float


def usefulness(amounts: Amounts, wanted: Amounts) -> Usefulness:
    """Compare what a server takes to what is missing."""
    shares = [amount / least for amount, least in zip(amounts, wanted, strict=True) if least > 0]
    suffices = min(shares, default=0) >= 1
    return Usefulness(suffices, -sum(shares) if suffices else sum(min(share, 1) for share in shares))


class Loose:
    """The amounts of the servers that may leave a node: their totals, and the largest of each kind."""

    def __init__(self, amounts: Sequence[Amounts]) -> None:
        self.number = len(amounts)
        self.totals = tuple(map(sum, zip(*amounts, strict=True))) or (0, 0, 0)
        self.largest = tuple(map(max, zip(*amounts, strict=True))) or (0, 0, 0)

    def least(self, wanted: Amounts) -> float:
        """Return how many of them must leave at least until so much is free; infinity, if that is never."""
        number = 0.0
        for total, largest, amount in zip(self.totals, self.largest, wanted, strict=True):
            if amount > total:
                return inf
            if amount > 0:
                number = max(number, ceil(amount / largest))
        return number
