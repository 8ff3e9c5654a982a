"""Locks on clusters, nodes, stacks and resources, held by the actions that requested them until these have ended.

No lock is released: a lock of an action that has ended, or was deleted, does not count, and is removed by the next
action that takes a lock. So a process may die at any line. An action whose worker died is recovered by another, and
still has its locks.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from actions.models import Action
from actions.types.base import Answer, Outcome
from cluster.models import Cluster, Lock, Node, Stack, StackResource

Lockable = Cluster | Node | Stack | StackResource


def find_holders(thing: Lockable, *, alone: bool = False) -> list[UUID]:
    """Return the actions that hold a lock on an object now, the oldest first.

    Args:
        alone: return exclusive locks only.

    To exclude a concurrent `take_lock`, the caller locks the row of the object before; for a resource of a stack, also
    that of the root stack.
    """
    locks = thing.locks.filter(is_exclusive=True) if alone else thing.locks
    unfinished = Action.objects.unfinished().filter(uuid__in=locks.values("action"))
    return list(unfinished.order_by("pk").values_list("uuid", flat=True))


@transaction.atomic
def take_lock(thing: Lockable, action: str, *, exclusive: bool = True) -> UUID | None:
    """Take a lock on an object, and return None, or the action whose lock conflicts.

    An action that holds the lock may take it again.
    """
    # Of two who ask at once, the second sees what the first got.
    type(thing)._default_manager.select_for_update(no_key=True).get(pk=thing.pk)
    thing.locks.exclude(action__in=[*find_holders(thing), action]).delete()
    held = thing.locks if exclusive else thing.locks.filter(is_exclusive=True)
    in_the_way = held.exclude(action=action).order_by("pk").values_list("action", flat=True).first()
    if in_the_way is None:
        thing.locks.update_or_create(action=action, defaults={"is_exclusive": exclusive})
    return in_the_way


def take_locks(action: str, wanted: Sequence[tuple[Lockable, bool]]) -> Outcome | None:
    """Take all of these locks for an action and return None, or take none and return a RETRY.

    They come in the order of `cluster.models.locks`, so that no two wait for each other: clusters before nodes, the
    root stack before its resources.
    """
    with transaction.atomic():
        for thing, exclusive in wanted:
            if holder := take_lock(thing, action, exclusive=exclusive):
                transaction.set_rollback(True)
                return refusal(thing, holder)
    return None


@transaction.atomic
def take_all(action: str, cluster: Cluster, uuids: Sequence[str]) -> Outcome | None:
    """Take exclusive locks on a cluster and its nodes, like `take_locks`, in a constant number of statements."""
    if in_the_way := take_locks(action, [(cluster, True)]):
        return in_the_way
    nodes = Node.objects.present().select_for_update(no_key=True).filter(uuid__in=uuids).order_by("pk")
    by_key = {node.pk: node for node in nodes}
    others = Lock.objects.filter(node__in=by_key).exclude(action=action)
    living = Action.objects.unfinished().filter(uuid__in=others.values("action"))
    others.exclude(action__in=list(living.values_list("uuid", flat=True))).delete()
    if held := others.order_by("pk").first():
        transaction.set_rollback(True)
        return refusal(by_key[held.node_id], held.action)
    locks = [Lock(node=node, action=action, is_exclusive=True) for node in by_key.values()]
    Lock.objects.bulk_create(locks, ignore_conflicts=True)
    return None


def refusal(record: Lockable, holder: UUID) -> Outcome:
    """Return the RETRY of an action that waits for a lock that another action holds; the message is Senlin's."""
    reason = f"Failed in locking {record._meta.verbose_name} {record.uuid}: action {holder} is at work on it"
    return Outcome(Answer.RETRY, reason, lock_holder=holder)


def wake_waiting(holder: UUID) -> int:
    """Make the actions due that wait for a lock of an action that has ended, and return their number.

    An action that is not woken tries again when its pause is over.
    """
    waiting = Action.objects.pending().filter(lock_holder=holder, due_time__gt=timezone.now())
    keys = dict(waiting.values_list("pk", "action_plan"))
    if not keys:
        return 0
    with transaction.atomic():
        # As for a signal: the rows of the plans are locked first, and their appliers then read the table.
        with_plans = waiting.select_related("action_plan").only("action_plan", "action_plan__uuid")
        locked = with_plans.select_for_update(of=("action_plan",), no_key=True).order_by("action_plan")
        plans = {action.action_plan_id: action.action_plan for action in locked.filter(pk__in=keys)}
        woken = waiting.filter(pk__in=keys).update(due_time=timezone.now())
        for plan in list(plans.values())[:1]:
            type(plan).objects.filter(pk__in=plans).update(signals=F("signals") + 1)
    return woken


def has_lock(thing: Lockable, action: str) -> bool:
    """Return whether an action, that has not ended, holds something."""
    held: bool = thing.locks.filter(action=action).exists()
    return held
