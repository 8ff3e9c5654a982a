"""A person changes what an action waits for, while nothing of its plan has begun."""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from actions.graph.proposals import check_cycles, check_edge
from actions.models import Action, ActionParent
from actions.models.refusals import Operation, require_allowed
from actions.operations.skipping import lock_action
from watcher_site.history import record
from watcher_site.refusals import Invalid

FIELD = "depends_on"


@transaction.atomic
def change_dependencies(uuid: UUID, edit: Callable[[Sequence[UUID]], Iterable[UUID]]) -> Action:
    """Replace the parents of an action within its plan.

    ``edit`` is called with the present parents, in the order of their creation, and returns the new ones. The plan's
    row is locked meanwhile, as when a plan begins or an action is skipped: the graph of a running plan is never
    changed.

    Raises:
        NotFound: there is no such action.
        Conflict: its plan has begun, or is over.
        Invalid: a parent is no action of the plan, depends on the action, or is derived from another action; or the
            action that is to derive this one is left out.
    """
    action = lock_action(uuid)
    plan = action.action_plan
    require_allowed(Operation.CHANGE_DEPENDENCIES, action)
    current = dict(action.parents.order_by("pk").values_list("uuid", "pk"))
    wanted = find_keys(action, edit(list(current)))
    check_graph_with(action, wanted)
    action.parent_links.filter(parent__in=set(current.values()) - set(wanted.values())).delete()
    new = [key for key in wanted.values() if key not in current.values()]
    ActionParent.objects.bulk_create(ActionParent(child=action, parent_id=key) for key in new)
    now = timezone.now()
    Action.objects.filter(pk=action.pk).update(updated_at=now)
    type(plan).objects.filter(pk=plan.pk).update(updated_at=now)
    record("action.update", action, within=plan, details={FIELD: {"from": list(current), "to": list(wanted)}})
    return action


def find_keys(action: Action, wanted: Iterable[UUID]) -> dict[UUID, int]:
    """Return the primary keys of these actions of the plan, each once, in their order."""
    uuids = list(dict.fromkeys(wanted))
    of_plan = Action.objects.present().filter(action_plan=action.action_plan_id, uuid__in=uuids)
    found = {uuid: (pk, origin) for uuid, pk, origin in of_plan.values_list("uuid", "pk", "derived_from__uuid")}
    origin = action.derived_from.uuid if action.derived_from else None
    for uuid in uuids:
        if uuid not in found:
            raise Invalid(f"{FIELD}: {uuid} is no action of the plan.")
        check_edge(FIELD, (action.uuid, origin), (uuid, found[uuid][1]))
    if origin and origin not in uuids:
        raise Invalid(f"{FIELD}: action {action.uuid} is derived from {origin}, and always waits for it.")
    return {uuid: found[uuid][0] for uuid in uuids}


def check_graph_with(action: Action, wanted: Iterable[UUID]) -> None:
    """Raise `Invalid`, naming them, if actions of the plan wait for each other once this one waits for these."""
    edges = ActionParent.objects.filter(child__action_plan=action.action_plan_id).exclude(child=action.pk)
    parents: dict[UUID, list[UUID]] = {action.uuid: list(wanted)}
    for child, parent in edges.values_list("child__uuid", "parent__uuid"):
        parents.setdefault(child, []).append(parent)
    check_cycles(parents, FIELD)
