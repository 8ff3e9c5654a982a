"""Limits of the size of clusters, and adjustments of the size."""

from dataclasses import dataclass

from django.db.models import TextChoices

from cluster.models.clusters import UNLIMITED
from cluster.policies import messages

MAX_NODES = 1000
"""The maximum size of a cluster, the default of OpenStack's cluster service."""
MAX_PERCENT = 1000


class AdjustmentType(TextChoices):
    EXACT_CAPACITY = "EXACT_CAPACITY", "exactly so many nodes"
    CHANGE_IN_CAPACITY = "CHANGE_IN_CAPACITY", "so many nodes more or, below zero, fewer"
    CHANGE_IN_PERCENTAGE = "CHANGE_IN_PERCENTAGE", "so many percent more or, below zero, fewer"


@dataclass(frozen=True)
class Bounds:
    """The minimum and maximum size of a cluster; with `UNLIMITED`, the maximum is `MAX_NODES`."""

    min_size: int = 0
    max_size: int = UNLIMITED

    @property
    def effective_max(self) -> int:
        return MAX_NODES if self.max_size == UNLIMITED else min(self.max_size, MAX_NODES)

    def find_flaw(self) -> str | None:
        """Return the first error of the bounds, or None."""
        if self.min_size < 0:
            return messages.MIN_SIZE_NEGATIVE.text
        if self.max_size < UNLIMITED:
            return messages.MAX_SIZE_NEGATIVE.fill(unlimited=UNLIMITED)
        if self.max_size > MAX_NODES or self.min_size > MAX_NODES:
            field = "max_size" if self.max_size > MAX_NODES else "min_size"
            return messages.SIZE_ABOVE.fill(field=field, number=MAX_NODES)
        if self.min_size > self.effective_max:
            return messages.SIZES_REVERSED.fill(least=self.min_size, most=self.max_size)
        return None

    def find_breach(self, size: int) -> str | None:
        """Return why a cluster with these bounds cannot have this size, or None."""
        if size < self.min_size:
            return messages.BELOW_MIN_SIZE.fill(size=size, least=self.min_size)
        if self.max_size != UNLIMITED and size > self.max_size:
            return messages.ABOVE_MAX_SIZE.fill(size=size, most=self.max_size)
        if size > MAX_NODES:
            return messages.ABOVE_MAX_NODES.fill(size=size, most=MAX_NODES)
        return None

    def clamp(self, size: int) -> int:
        """Return the nearest size within these bounds."""
        return min(max(size, self.min_size), self.effective_max)


def find_flaw(adjustment: str | None, number: float | None, *, is_bounded: bool) -> str | None:
    """Return the first error of an adjustment, or None.

    Args:
        is_bounded: whether the request changes the bounds, so that the adjustment is optional.
    """
    if adjustment is None and number is None:
        return None if is_bounded else messages.ADJUSTMENT_REQUIRED.text
    if adjustment is None or number is None:
        present, missing = ("number", "adjustment_type") if number is not None else ("adjustment_type", "number")
        return messages.REQUIRED_WITH.fill(field=missing, other=present)
    if adjustment == AdjustmentType.CHANGE_IN_PERCENTAGE and abs(number) > MAX_PERCENT:
        return messages.PERCENTAGE_RULE.fill(most=MAX_PERCENT, same=MAX_PERCENT)
    if adjustment != AdjustmentType.CHANGE_IN_PERCENTAGE and number != int(number):
        return messages.WHOLE_NUMBER.text
    if adjustment == AdjustmentType.EXACT_CAPACITY:
        return messages.NUMBER_NEGATIVE.text if number < 0 else None
    return None if number else messages.NUMBER_ZERO.text


def compute_change(size: int, adjustment: str, number: float, min_step: int = 1) -> int:
    """Return the change of a cluster of this size by an adjustment; negative if it shrinks.

    Percentages are rounded to whole nodes: away from zero if the result is below one, else towards zero. The result is
    at least ``min_step`` nodes.
    """
    if adjustment == AdjustmentType.EXACT_CAPACITY:
        return int(number) - size
    if adjustment == AdjustmentType.CHANGE_IN_CAPACITY:
        return int(number)
    sign = -1 if number < 0 else 1
    share = abs(number) * size / 100
    count = 1 if 0 < share < 1 else int(share)
    return sign * max(count, min_step if number else 0)
