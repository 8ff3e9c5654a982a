"""Changes of an action's dependencies, before its plan begins."""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from actions import messages
from actions.graph.proposals import check_cycles, check_edge
from actions.messages import DEPENDENCIES_CHANGED
from actions.models import Action, ActionParent
from actions.models.refusals import Operation, require_allowed
from actions.operations.approvals import withdraw_approvals
from actions.operations.skipping import lock_action
from watcher_site.history import record
from watcher_site.refusals import Invalid

FIELD = "depends_on"


@transaction.atomic
def change_dependencies(uuid: UUID, edit: Callable[[Sequence[UUID]], Iterable[UUID]]) -> Action:
    """Replace the parents of an action within its plan.

    ``edit`` is called with the current parents, in the order of their creation, and returns the new ones. The plan's
    row is locked meanwhile, as when a plan begins or an action is skipped: the graph of a running plan never changes.
    An approval of the plan is withdrawn.

    Raises:
        NotFound: there is no such action.
        Conflict: its plan has begun, or has ended.
        Invalid: a parent is not an action of the plan, depends on the action, or is derived from another action; or
            the action that will derive this one is missing.
    """
    action = lock_action(uuid)
    plan = action.action_plan
    require_allowed(Operation.CHANGE_DEPENDENCIES, action)
    current = dict(action.parents.order_by("pk").values_list("uuid", "pk"))
    parents = find_keys(action, edit(list(current)))
    check_graph_with(action, parents)
    action.parent_links.filter(parent__in=set(current.values()) - set(parents.values())).delete()
    new = [key for key in parents.values() if key not in current.values()]
    ActionParent.objects.bulk_create(ActionParent(child=action, parent_id=key) for key in new)
    now = timezone.now()
    Action.objects.filter(pk=action.pk).update(updated_at=now)
    if not withdraw_approvals([plan], DEPENDENCIES_CHANGED.text):
        type(plan).objects.filter(pk=plan.pk).update(updated_at=now)
    record("action.update", action, within=plan, details={FIELD: {"from": list(current), "to": list(parents)}})
    return action


def find_keys(action: Action, parents: Iterable[UUID]) -> dict[UUID, int]:
    """Return the primary keys of these actions of the plan, without duplicates, in their order."""
    uuids = list(dict.fromkeys(parents))
    plan_actions = Action.objects.present().filter(action_plan=action.action_plan_id, uuid__in=uuids)
    parents_by_uuid = {
        uuid: (pk, origin) for uuid, pk, origin in plan_actions.values_list("uuid", "pk", "derived_from__uuid")
    }
    origin = action.derived_from.uuid if action.derived_from else None
    for uuid in uuids:
        if uuid not in parents_by_uuid:
            raise Invalid(messages.STRANGE_PARENT.fill(field=FIELD, uuid=uuid))
        check_edge(FIELD, (action.uuid, origin), (uuid, parents_by_uuid[uuid][1]))
    if origin and origin not in uuids:
        raise Invalid(messages.WAITS_FOR_ORIGIN.fill(field=FIELD, uuid=action.uuid, origin=origin))
    return {uuid: parents_by_uuid[uuid][0] for uuid in uuids}


def check_graph_with(action: Action, parents: Iterable[UUID]) -> None:
    """Raise `Invalid` with the actions of the plan that would depend on each other with these parents."""
    edges = ActionParent.objects.filter(child__action_plan=action.action_plan_id).exclude(child=action.pk)
    graph: dict[UUID, list[UUID]] = {action.uuid: list(parents)}
    for child, parent in edges.values_list("child__uuid", "parent__uuid"):
        graph.setdefault(child, []).append(parent)
    check_cycles(graph, FIELD)
