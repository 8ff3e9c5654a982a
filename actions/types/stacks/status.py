"""Store the results of operations on stacks and resources.

After a crash, a result may have been stored already: it stays.
"""

from collections.abc import Sequence

from django.db.models import Model

from actions.types.base import ActionFailed
from cluster.models import Stack, StackResource
from cluster.models.stacks import IN_PROGRESS, Verb
from cluster.simulated import foreseen_cloud
from watcher_site.messages import cut
from watcher_site.state_machine import ConcurrentTransition, TransitionNotAllowed

SHOWN = 10


def begin(part: Stack | StackResource, verb: Verb, records: Sequence[Model] = ()) -> None:
    """Begin an operation on a stack or a resource, and write related rows in the same commit.

    Raises:
        ActionFailed: another operation on it is in progress.
    """
    try:
        part.begin(verb)
        write(part, records)
    except ConcurrentTransition as problem:
        raise ActionFailed(f"{part._meta.verbose_name} {part.uuid}: something else is done to it") from problem


def end_well(part: Stack | StackResource, left_out: Sequence[str] = (), records: Sequence[Model] = ()) -> None:
    """End an operation on a stack or a resource with success, and name the resources that were left out."""
    if part.status not in IN_PROGRESS:
        return
    part.finish()
    if left_out:
        part.status_reason = cut(f"{part.status_reason}, but for what was skipped: {listed(left_out)}")
    save(part, records)


def fail_under_way(part: Stack | StackResource, reason: str) -> None:
    """Set a stack or a resource to failed if an operation on it is in progress."""
    if part.status in IN_PROGRESS:
        part.fail(reason)
        save(part)


def save(part: Stack | StackResource, records: Sequence[Model] = ()) -> None:
    """Raises: `ActionFailed`, where something else was done to it meanwhile."""
    try:
        write(part, records)
    except (ConcurrentTransition, TransitionNotAllowed) as problem:
        raise ActionFailed(f"{part._meta.verbose_name} {part.uuid} is no longer as it was read") from problem


def write(part: Stack | StackResource, records: Sequence[Model] = ()) -> None:
    """Write a change of a part of a stack, unless it is one on a model of the cloud."""
    if foreseen_cloud() is None:
        part.save_state(*records)


def listed(names: Sequence[str]) -> str:
    more = " and others" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
