"""Checks that the preflights of operations on clusters, nodes and stacks share."""

from collections.abc import Sequence

from actions.locking import Lockable, find_holders, refusal
from actions.types.base import CannotBeForeseen
from cluster.foresight import ForeseenCloud
from cluster.models import Cluster, Stack


def require_known(model: ForeseenCloud, record: Cluster | Stack) -> None:
    """Raise `CannotBeForeseen` if an earlier action of the plan would change a cluster or a stack."""
    if record.uuid in model.members.changed:
        kind = record._meta.verbose_name
        raise CannotBeForeseen(f"Another action of the plan changes {kind} {record.uuid} before.")


def require_unlocked(model: ForeseenCloud, action: str, wanted: Sequence[tuple[Lockable, bool]]) -> None:
    """Check that no action of another plan holds one of these locks.

    Raises:
        CannotBeForeseen: the action would wait for another one, which may change the later decision.
    """
    for record, exclusive in wanted:
        for holder in find_holders(record, alone=not exclusive):
            if holder not in model.members.ended and str(holder) != action:
                raise CannotBeForeseen(f"It would wait: {refusal(record, holder).reason}")
