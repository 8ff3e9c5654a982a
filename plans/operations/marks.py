"""Marks of servers, nodes, stacks and resources as unhealthy, for API, mounts, console and commands.

The next repair replaces marked objects (docs/compatibility.md, "Marks of unhealthy resources"). A mark is written
under the row locks that the start of a repair acquires as well, so that the two never interleave. It is refused while
an action holds the lock of the object.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from django.db import transaction
from django.db.models import Q

from actions.models import Action
from actions.types.clusters.rules import settle_status
from cluster.models import Cluster, Lock, Node, Server, Stack, StackResource
from cluster.models.stacks import DELETING, MARKED, Verb
from cluster.operations.marks import Mark, Markable, find_holder, find_mark
from plans import messages
from plans.operations.base import lock_rows
from plans.operations.stack_progress import VERBS, starting_operations
from watcher_site import history
from watcher_site.database.locks import lock_present
from watcher_site.database.text import require_storable
from watcher_site.messages import cut
from watcher_site.refusals import Conflict, Invalid
from watcher_site.request_context import CallingContext

REASON = "resource_status_reason"


class ActionInProgress(Conflict):
    """An operation holds the lock of the object to be marked. Clients of Heat match the name of this class."""


def mark(target: Markable, unhealthy: bool, reason: str = "", caller: CallingContext | None = None) -> Mark:
    """Mark an object as unhealthy, or remove the mark.

    For a server of a stack or a node, the resource or node is marked instead, and for a nested stack the resource that
    contains it. The call has no effect if the object is being deleted, or if there is no mark to remove.

    Raises:
        Invalid: the reason is invalid, or the object cannot be identified.
        NotFound: the object was deleted meanwhile.
        ActionInProgress: an operation holds its lock.
        Conflict: another operation on it is in progress.
    """
    checked = checked_reason(reason)
    holder = find_holder(target)
    verbs: dict[type[Any], Callable[..., bool]] = {
        Stack: mark_stack,
        StackResource: mark_resource,
        Server: mark_server,
        Node: mark_node,
    }
    verbs[type(holder)](holder, unhealthy, checked, caller)
    return find_mark(type(holder).objects.get(pk=holder.pk))


def checked_reason(reason: Any) -> str:
    """Return a reason as it is stored: truncated between words if it is too long, empty if it is missing.

    OpenStack's orchestration service takes reasons of any length.

    Raises:
        Invalid: it is not a text, or the database cannot store it.
    """
    if reason is None:
        return ""
    if not isinstance(reason, str):
        raise Invalid(f"{REASON}: must be a text.")
    require_storable(REASON, reason)
    return cut(reason.strip())


# Stacks and their resources


@transaction.atomic
def mark_stack(stack: Stack, unhealthy: bool, reason: str, caller: CallingContext | None = None) -> bool:
    """Mark a root stack. Refused during operations on any of its resources, because they write its status."""
    root = lock_root(stack)
    require_unlocked(Lock.objects.filter(stack=root), root)
    return write_mark(root, "stack", unhealthy, reason, caller, root)


@transaction.atomic
def mark_resource(resource: StackResource, unhealthy: bool, reason: str, caller: CallingContext | None = None) -> bool:
    root = lock_root(resource.stack)
    current = lock_present(
        resource, f"The Resource ({resource.name}) could not be found in Stack {resource.stack.name}."
    )
    within = Q(stack=root) | Q(resource__in=ancestor_keys(current))
    require_unlocked(Lock.objects.filter(within, is_exclusive=True), current.stack)
    return write_mark(current, "resource", unhealthy, reason, caller, root)


def lock_root(stack: Stack) -> Stack:
    """Lock and return the root of a tree. Actions that acquire a lock in the tree lock this row, too.

    Raises:
        NotFound: the stack was deleted meanwhile.
        ActionInProgress: an operation on it was accepted and is about to begin.
    """
    root = lock_present(Stack(pk=stack.root_key), f"The Stack ({stack.name}) could not be found.")
    if verb := starting_operations([root.uuid]).get(str(root.uuid)):
        refuse_in_progress(stack, verb)
    return root


def ancestor_keys(resource: StackResource) -> list[int]:
    """Return the keys of a resource and of the resources whose nested stacks contain it."""
    keys, stack = [resource.pk], resource.stack
    while stack.parent_resource is not None:
        keys.append(stack.parent_resource.pk)
        stack = stack.parent_resource.stack
    return keys


def require_unlocked(locks: Any, stack: Stack) -> None:
    """Raise `ActionInProgress`, with the message of Heat, if an unfinished action holds one of these locks."""
    holders = Action.objects.unfinished().filter(uuid__in=locks.values("action"))
    if holder := holders.order_by("pk").first():
        refuse_in_progress(stack, VERBS.get(holder.action_type, Verb.UPDATE))


def refuse_in_progress(stack: Stack, verb: Verb) -> NoReturn:
    raise ActionInProgress(messages.STACK_BUSY.fill(name=stack.name, verb=verb))


def write_mark(
    part: Stack | StackResource, kind: str, unhealthy: bool, reason: str, caller: CallingContext | None, root: Stack
) -> bool:
    """Write the mark if it changes the row, and return whether it did."""
    if part.status in DELETING if unhealthy else not part.is_marked:
        return False
    transition = part.mark_unhealthy if unhealthy else part.mark_healthy
    transition(reason)
    part.save_state()
    write_history(kind, part, unhealthy, reason, caller, root)
    return True


def write_history(
    kind: str, target: Markable, unhealthy: bool, reason: str, caller: CallingContext | None, within: Any = None
) -> None:
    history.record(f"{kind}.{'mark' if unhealthy else 'clear'}", target, caller=caller, message=reason, within=within)


# Nodes and servers


@transaction.atomic
def mark_node(node: Node, unhealthy: bool, reason: str, caller: CallingContext | None = None) -> bool:
    """Mark a node: set it to ERROR, so that it is recovered or removed first, and update the status of its cluster."""
    clusters = lock_rows(Cluster, [node.cluster_id] if node.cluster_id else [])
    current = lock_present(node)
    if current.cluster_id != node.cluster_id:
        raise Conflict(messages.MEMBERSHIP_CHANGED.fill(uuid=node.uuid))
    held = Lock.objects.filter(Q(node=current) | Q(cluster__in=clusters, is_exclusive=True))
    require_idle(Action.objects.unfinished().filter(uuid__in=held.values("action")), current)
    if not unhealthy and current.unhealthy_reason is None:
        return False
    if current.status not in Node.SETTLED:
        raise Conflict(messages.NODE_UNSETTLED.fill(uuid=current.uuid, status=current.status))
    transition = current.mark_unhealthy if unhealthy else current.mark_healthy
    transition(reason)
    current.save_state()
    for cluster in clusters:
        if cluster.status in Cluster.SETTLED:
            settle_status(cluster, f"Node {current.name} was marked: {{}}" if unhealthy else "A mark was cleared: {}")
            cluster.save_state()
    write_history("node", current, unhealthy, reason, caller, next(iter(clusters), None))
    return True


@transaction.atomic
def mark_server(server: Server, unhealthy: bool, reason: str, caller: CallingContext | None = None) -> bool:
    current = lock_present(server)
    if current.task_state:
        verb = "mark unhealthy" if unhealthy else "mark healthy"
        raise Conflict(messages.INSTANCE_BUSY.fill(verb=verb, uuid=current.uuid, state=current.task_state))
    begun = Action.objects.filter(state__in=Action.BEGUN)
    require_idle(begun.filter(target=str(current.uuid)), current)
    if not unhealthy and current.unhealthy_reason is None:
        return False
    current.unhealthy_reason = (reason or MARKED) if unhealthy else None
    current.save_changes(["unhealthy_reason"])
    write_history("server", current, unhealthy, reason, caller)
    return True


def require_idle(actions: Any, target: Node | Server) -> None:
    if holder := actions.order_by("pk").first():
        raise Conflict(
            messages.MARK_LOCKED.fill(
                kind=type(target).__name__, uuid=target.uuid, action=holder.uuid, type=holder.action_type
            )
        )
