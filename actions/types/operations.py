"""What the preflight of operations on clusters, nodes and stacks shares."""

from collections.abc import Sequence

from actions.locking import Lockable, find_holders, refusal
from actions.types.base import CannotBeForeseen
from cluster.foresight import ForeseenCloud
from cluster.models import Cluster, Stack


def require_known(model: ForeseenCloud, thing: Cluster | Stack) -> None:
    """Raises: `CannotBeForeseen`, where an action of the plan would change a cluster or a stack before."""
    if thing.uuid in model.members.changed:
        kind = thing._meta.verbose_name
        raise CannotBeForeseen(f"Another action of the plan changes {kind} {thing.uuid} before.")


def require_unlocked(model: ForeseenCloud, action: str, wanted: Sequence[tuple[Lockable, bool]]) -> None:
    """Look for actions of other plans that hold these, alone where that is true.

    Raises:
        CannotBeForeseen: it would wait for one of them, which may change what is decided then.
    """
    for thing, exclusive in wanted:
        for holder in find_holders(thing, alone=not exclusive):
            if holder not in model.members.ended and str(holder) != action:
                raise CannotBeForeseen(f"It would wait: {refusal(thing, holder).reason}")
