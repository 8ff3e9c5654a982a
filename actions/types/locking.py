"""Locks on clusters, nodes, stacks and resources, held by the actions that requested them until these have ended.

Locks are not released: a lock of an action that has ended or was deleted is ignored, and removed by the next action
that takes a lock. Therefore processes may die at any time, and an action that another worker recovers still has its
locks. A preflight takes no locks, but checks that the action would not wait for one.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from actions.messages import LOCKED
from actions.models import Action
from actions.types import messages
from actions.types.base import Answer, CannotBeForeseen, Outcome
from cluster.models import Cluster, Lock, Node, Stack, StackResource
from cluster.simulated import SimulatedCloud

Lockable = Cluster | Node | Stack | StackResource


def find_holders(record: Lockable, *, exclusive_only: bool = False) -> list[UUID]:
    """Return the actions that hold a lock on an object now, the oldest first.

    Args:
        exclusive_only: return exclusive locks only.

    To prevent a concurrent `take_lock`, the caller first locks the row of the object, and for a resource of a stack
    also the row of the root stack.
    """
    locks = record.locks.filter(is_exclusive=True) if exclusive_only else record.locks
    unfinished = Action.objects.unfinished().filter(uuid__in=locks.values("action"))
    return list(unfinished.order_by("pk").values_list("uuid", flat=True))


def has_lock(record: Lockable, action: str) -> bool:
    """Return whether an unfinished action holds a lock on an object."""
    is_locked: bool = record.locks.filter(action=action).exists()
    return is_locked


@transaction.atomic
def take_lock(record: Lockable, action: str, *, exclusive: bool = True) -> UUID | None:
    """Take a lock on an object and return None, or return the action whose lock conflicts.

    An action that holds the lock can take it again.
    """
    # Of two concurrent calls, the second sees the lock of the first.
    type(record)._default_manager.select_for_update(no_key=True).get(pk=record.pk)
    record.locks.exclude(action__in=[*find_holders(record), action]).delete()
    conflicting = record.locks if exclusive else record.locks.filter(is_exclusive=True)
    conflict = conflicting.exclude(action=action).order_by("pk").values_list("action", flat=True).first()
    if conflict is None:
        record.locks.update_or_create(action=action, defaults={"is_exclusive": exclusive})
    return conflict


def take_locks(action: str, locks: Sequence[tuple[Lockable, bool]]) -> Outcome | None:
    """Take all of these locks for an action and return None, or take none and return a RETRY.

    To avoid deadlocks, they must be in the order of `cluster.models.locks`: clusters before nodes, the root stack
    before its resources.
    """
    with transaction.atomic():
        for record, exclusive in locks:
            if holder := take_lock(record, action, exclusive=exclusive):
                transaction.set_rollback(True)
                return make_retry(record, holder)
    return None


@transaction.atomic
def take_all(action: str, cluster: Cluster, uuids: Sequence[str]) -> Outcome | None:
    """Take exclusive locks on a cluster and its nodes, like `take_locks`, in a constant number of statements."""
    if conflict := take_locks(action, [(cluster, True)]):
        return conflict
    nodes = Node.objects.present().select_for_update(no_key=True).filter(uuid__in=uuids).order_by("pk")
    by_key = {node.pk: node for node in nodes}
    other_locks = Lock.objects.filter(node__in=by_key).exclude(action=action)
    living = Action.objects.unfinished().filter(uuid__in=other_locks.values("action"))
    other_locks.exclude(action__in=list(living.values_list("uuid", flat=True))).delete()
    if lock := other_locks.order_by("pk").first():
        transaction.set_rollback(True)
        return make_retry(by_key[lock.node_id], lock.action)
    locks = [Lock(node=node, action=action, is_exclusive=True) for node in by_key.values()]
    Lock.objects.bulk_create(locks, ignore_conflicts=True)
    return None


def make_retry(record: Lockable, holder: UUID) -> Outcome:
    """Return the RETRY of an action that waits for a lock that another action holds; the message is Senlin's."""
    reason = LOCKED.fill(kind=record._meta.verbose_name, uuid=record.uuid, holder=holder)
    return Outcome(Answer.RETRY, reason, lock_holder=holder)


def wake_waiting(holder: UUID) -> int:
    """Make actions due that wait for a lock of an action that has ended, and return their number.

    Other actions are retried when their pause is over.
    """
    waiting = Action.objects.pending().filter(lock_holder=holder, due_time__gt=timezone.now())
    keys = set(waiting.values_list("action_plan", flat=True))
    if not keys:
        return 0
    plans = Action.action_plan.get_queryset().filter(pk__in=keys)
    with transaction.atomic():
        # As for a signal: lock the rows of the plans first, and notify their appliers by the counter.
        list(plans.select_for_update(no_key=True).order_by("pk").values_list("pk"))
        woken = waiting.filter(action_plan__in=keys).update(due_time=timezone.now())
        plans.update(signals=F("signals") + 1)
    return woken


def require_known(model: SimulatedCloud, record: Cluster | Stack) -> None:
    """Raise `CannotBeForeseen` if an earlier action of the plan changes this cluster or stack."""
    if record.uuid in model.members.changed:
        kind = record._meta.verbose_name
        raise CannotBeForeseen(messages.CHANGED_BEFORE.fill(object=kind, uuid=record.uuid))


def require_unlocked(model: SimulatedCloud, action: str, locks: Sequence[tuple[Lockable, bool]]) -> None:
    """Check that no action of another plan holds one of these locks.

    Raises:
        CannotBeForeseen: the action would wait for another one, which may change the later decision.
    """
    for record, exclusive in locks:
        for holder in holders_of(model, record, exclusive_only=not exclusive):
            if holder not in model.members.ended and str(holder) != action:
                raise CannotBeForeseen(messages.WOULD_WAIT.fill(reason=make_retry(record, holder).reason))


def holders_of(model: SimulatedCloud, record: Lockable, *, exclusive_only: bool) -> Sequence[UUID]:
    """Return the same as `find_holders`, but read the locks of all stacks and resources once, in two queries."""
    if isinstance(record, Stack | StackResource):
        locks = model.members.read_once(("locks", "stacks"), read_stack_locks).get(record.uuid, ())
        return [holder for holder, is_exclusive in locks if is_exclusive or not exclusive_only]
    return find_holders(record, exclusive_only=exclusive_only)


def read_stack_locks() -> Mapping[UUID, Sequence[tuple[UUID, bool]]]:
    """Return the holders of each locked stack and resource, the oldest first, and whether each lock is exclusive."""
    locks = Lock.objects.filter(cluster=None, node=None)
    unfinished = Action.objects.unfinished().filter(uuid__in=locks.values("action"))
    ages = dict(unfinished.values_list("uuid", "pk"))
    locks_by_record: dict[UUID, list[tuple[UUID, bool]]] = defaultdict(list)
    rows = locks.values_list("action", "is_exclusive", "stack__uuid", "resource__uuid")
    for action, is_exclusive, stack, resource in sorted(rows, key=lambda row: ages.get(row[0], 0)):
        if action in ages:
            locks_by_record[stack or resource].append((action, is_exclusive))
    return locks_by_record
