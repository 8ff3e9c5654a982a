"""Checks that the preflights of operations on clusters, nodes and stacks share."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from actions.models import Action
from actions.types.base import CannotBeForeseen
from actions.types.locking import Lockable, find_holders, refusal
from cluster.models import Cluster, Lock, Stack, StackResource
from cluster.simulated import ForeseenCloud


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
        for holder in holders_of(model, record, alone=not exclusive):
            if holder not in model.members.ended and str(holder) != action:
                raise CannotBeForeseen(f"It would wait: {refusal(record, holder).reason}")


def holders_of(model: ForeseenCloud, record: Lockable, *, alone: bool) -> Sequence[UUID]:
    """Return the same as `find_holders`, but read the locks of all stacks and resources once, in two queries."""
    if isinstance(record, Stack | StackResource):
        held = model.members.once(("locks", "stacks"), read_stack_locks).get(record.uuid, ())
        return [holder for holder, is_exclusive in held if is_exclusive or not alone]
    return find_holders(record, alone=alone)


def read_stack_locks() -> Mapping[UUID, Sequence[tuple[UUID, bool]]]:
    """Return the holders of each locked stack and resource, the oldest first, and whether each lock is exclusive."""
    locks = Lock.objects.filter(cluster=None, node=None)
    unfinished = Action.objects.unfinished().filter(uuid__in=locks.values("action"))
    ages = dict(unfinished.values_list("uuid", "pk"))
    found: dict[UUID, list[tuple[UUID, bool]]] = defaultdict(list)
    rows = locks.values_list("action", "is_exclusive", "stack__uuid", "resource__uuid")
    for action, is_exclusive, stack, resource in sorted(rows, key=lambda row: ages.get(row[0], 0)):
        if action in ages:
            found[stack or resource].append((action, is_exclusive))
    return found
