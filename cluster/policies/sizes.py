"""Limits for the size of clusters, and the result of an adjustment."""

from dataclasses import dataclass

from django.db.models import TextChoices

from cluster.models.clusters import UNLIMITED

MOST_NODES = 1000
"""A cluster never has more: as OpenStack's cluster service by default."""
MOST_PERCENT = 1000


class AdjustmentType(TextChoices):
    EXACT_CAPACITY = "EXACT_CAPACITY", "exactly so many nodes"
    CHANGE_IN_CAPACITY = "CHANGE_IN_CAPACITY", "so many nodes more or, below zero, fewer"
    CHANGE_IN_PERCENTAGE = "CHANGE_IN_PERCENTAGE", "so many percent more or, below zero, fewer"


@dataclass(frozen=True)
class Bounds:
    """Between which a cluster's size stays: `UNLIMITED` as ``max_size`` means no limit but `MOST_NODES`."""

    min_size: int = 0
    max_size: int = UNLIMITED

    @property
    def greatest(self) -> int:
        return MOST_NODES if self.max_size == UNLIMITED else min(self.max_size, MOST_NODES)

    def find_flaw(self) -> str | None:
        """Return which field breaks which rule, if these bounds make no sense."""
        if self.min_size < 0:
            return "min_size: must not be below 0."
        if self.max_size < UNLIMITED:
            return f"max_size: must not be below 0, or be {UNLIMITED} for no limit."
        if self.max_size > MOST_NODES or self.min_size > MOST_NODES:
            field = "max_size" if self.max_size > MOST_NODES else "min_size"
            return f"{field}: must not be above {MOST_NODES}."
        if self.min_size > self.greatest:
            return f"min_size: {self.min_size} is above the max_size {self.max_size}."
        return None

    def find_breach(self, size: int) -> str | None:
        """Return why a cluster within these bounds may not have so many nodes, if it may not."""
        if size < self.min_size:
            return f"The target capacity ({size}) is less than the cluster's min_size ({self.min_size})."
        if self.max_size != UNLIMITED and size > self.max_size:
            return f"The target capacity ({size}) is greater than the cluster's max_size ({self.max_size})."
        if size > MOST_NODES:
            return f"The target capacity ({size}) is greater than the maximum number of nodes ({MOST_NODES})."
        return None

    def cut(self, size: int) -> int:
        """Return the size within these bounds that is nearest to this one."""
        return min(max(size, self.min_size), self.greatest)


def find_flaw(adjustment: str | None, number: float | None, *, is_bounded: bool) -> str | None:
    """Return which field of an adjustment breaks which rule, if one does.

    Args:
        is_bounded: whether there are new bounds: then there need be no adjustment.
    """
    if adjustment is None and number is None:
        return None if is_bounded else "adjustment_type: must be there, unless min_size or max_size is."
    if adjustment is None or number is None:
        given, missing = ("number", "adjustment_type") if number is not None else ("adjustment_type", "number")
        return f"{missing}: must be there, as {given} is."
    if adjustment == AdjustmentType.CHANGE_IN_PERCENTAGE and abs(number) > MOST_PERCENT:
        return f"number: must be a percentage from -{MOST_PERCENT} to {MOST_PERCENT}."
    if adjustment != AdjustmentType.CHANGE_IN_PERCENTAGE and number != int(number):
        return "number: must be a whole number of nodes."
    if adjustment == AdjustmentType.EXACT_CAPACITY:
        return "number: must not be below 0." if number < 0 else None
    return None if number else "number: must not be 0."


def change_of(size: int, adjustment: str, number: float, min_step: int = 1) -> int:
    """Return how many nodes more, or below zero fewer, an adjustment makes of a cluster of so many.

    Percentages come to whole nodes: away from zero where they are less than one, towards zero where they are more; and
    to ``min_step`` nodes at least.
    """
    if adjustment == AdjustmentType.EXACT_CAPACITY:
        return int(number) - size
    if adjustment == AdjustmentType.CHANGE_IN_CAPACITY:
        return int(number)
    sign = -1 if number < 0 else 1
    share = abs(number) * size / 100
    whole = 1 if 0 < share < 1 else int(share)
    return sign * max(whole, min_step if number else 0)
