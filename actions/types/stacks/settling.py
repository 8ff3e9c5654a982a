"""How stacks and resources that read as at work come to say what came of it.

Whoever goes on after a crash may find that this was said already: then it stays.
"""

from collections.abc import Iterable, Sequence

from django.db.models import Model

from actions.types.base import ActionFailed
from cluster.models import Stack, StackResource
from cluster.models.stacks import IN_PROGRESS, Verb
from cluster.stacks.decisions import Change, Kind
from watcher_site.messages import cut
from watcher_site.state import ConcurrentTransition, TransitionNotAllowed

SHOWN = 10


def begin(part: Stack | StackResource, verb: Verb, records: Sequence[Model] = ()) -> None:
    """Have a part of a stack read as at work, and write rows that go with that, in the same commit.

    Raises:
        ActionFailed: something else is done to it.
    """
    try:
        part.begin(verb)
        part.save_state(*records)
    except ConcurrentTransition as problem:
        raise ActionFailed(f"{part._meta.verbose_name} {part.uuid}: something else is done to it") from problem


def end_well(part: Stack | StackResource, left_out: Sequence[str] = (), records: Sequence[Model] = ()) -> None:
    """Have a part of a stack say that what was done to it came to a good end, and which resources were left out."""
    if part.status not in IN_PROGRESS:
        return
    part.finish()
    if left_out:
        part.status_reason = cut(f"{part.status_reason}, but for what was skipped: {listed(left_out)}")
    save(part, records)


def fail_under_way(part: Stack | StackResource, reason: str) -> None:
    """Have a part of a stack that still reads as at work say that it failed."""
    if part.status in IN_PROGRESS:
        part.fail(reason)
        save(part)


def save(part: Stack | StackResource, records: Sequence[Model] = ()) -> None:
    """Raises: `ActionFailed`, where something else was done to it meanwhile."""
    try:
        part.save_state(*records)
    except (ConcurrentTransition, TransitionNotAllowed) as problem:
        raise ActionFailed(f"{part._meta.verbose_name} {part.uuid} is no longer as it was read") from problem


def listed(names: Sequence[str]) -> str:
    more = " and others" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def require_no_new_marks(root: Stack, changes: Iterable[Change], known: Iterable[str]) -> None:
    """Look whether a person has marked something since a decision that would forget about that.

    Args:
        changes: what was decided.
        known: what was marked then: the UUIDs of stacks and resources.

    Raises:
        ActionFailed: it names what was marked.
    """
    stacks = Stack.objects.present().tree(root)
    resources = StackResource.objects.present().tree(root)
    marked = [one for rows in (stacks, resources) for one in rows.filter(status="CHECK_FAILED")]
    forgotten = {str(root.uuid), *kept_by(changes)}.difference(known)
    for one in marked:
        if str(one.uuid) in forgotten:
            raise ActionFailed(f"{one.name} was marked unhealthy since this plan was made.")


def kept_by(changes: Iterable[Change]) -> set[str]:
    """Return the UUIDs of resources, and of stacks within, that are gone on with as they are."""
    found: set[str] = set()
    for change in changes:
        if change.kind in (Kind.CREATE, Kind.UPDATE):
            found.update({change.uuid, *([change.nested] if change.nested else [])})
            for step in change.steps:
                found |= kept_by(step)
    return found
