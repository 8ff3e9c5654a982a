"""Propagation: actions end with an action on which they depend, and are skipped or restored with their origin.

The origin of a planned action is the action that will derive it.
"""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Exists, OuterRef

from actions.messages import ORIGIN_SKIPPED, ORIGIN_SUCCEEDED, PARENT_CANCELLED, PARENT_FAILED, SKIPPED_BECAUSE
from actions.models import Action
from actions.models.querysets import ActionQuerySet
from actions.models.refusals import origin_skipped
from watcher_site.database.queries import Placeholder, Query

State = Action.State
WITH_LOCKED_PLAN = Query(
    Action.objects.filter(pk=Placeholder("action"))
    .select_related("action_plan")
    .select_for_update(of=("action_plan",), no_key=True)
)
# The final states of an unsuccessful action.
WITHOUT_SUCCESS = frozenset({State.FAILED, State.CANCELLED})
NOT_EXECUTED_BECAUSE = {State.FAILED: PARENT_FAILED, State.CANCELLED: PARENT_CANCELLED}
NEVER_DERIVED = ORIGIN_SKIPPED.text
UNDERIVED = {
    State.SKIPPED: NEVER_DERIVED,
    State.SUCCEEDED: ORIGIN_SUCCEEDED.text,
}


def may_end_others(action: Action) -> bool:
    """Return whether other actions may have to end because an action ended in this state."""
    return action.state in WITHOUT_SUCCESS or (action.state in Action.FINAL and action.is_to_derive)


def find_bound_actions(action: Action) -> ActionQuerySet:
    """Lock the plan's row until the transaction ends, and return the actions that end with an action that has ended.

    Planned actions that it would have derived always end with it. If it was unsuccessful, the actions that depend on
    it also end if the plan's ``on_failure`` is "stop", or if it is a derived action. In a plan that is being
    cancelled, no actions end with it.
    """
    for row in WITH_LOCKED_PLAN.rows(action=action.pk):
        plan = row.action_plan
        is_binding = action.derived_from_id is not None or plan.on_failure == plan.OnFailure.STOP
        if plan.state == plan.State.CANCELLING:
            break
        if is_binding and action.state in WITHOUT_SUCCESS:
            return Action.objects.depending_on(action)
        if action.is_to_derive:
            return Action.objects.planned_by([action.pk])
    return Action.objects.none()


def end_dependents(action: Action, bound: ActionQuerySet) -> int:
    """End the actions that depend on an action, and return their number.

    It is one statement, in the transaction that writes the action itself, whose plan `find_bound_actions` has locked.
    """
    return bound.end_as(*end_with(action.uuid, action.state))


def end_with(uuid: UUID, state: str) -> tuple[str, str]:
    """Return the state and the message of actions that end with an action that ended in this state."""
    if state in WITHOUT_SUCCESS:
        return state, not_executed_message(uuid, state)
    return State.SKIPPED, SKIPPED_BECAUSE.fill(finding=UNDERIVED[State(state)])


def end_all_dependents(actions: ActionQuerySet) -> int:
    """End the dependents of the actions that ended without success, and return their number.

    Called when a plan begins: actions may have been cancelled before their dependents were added, or before
    ``on_failure`` was set. The caller has locked the plan's row.
    """
    links = Action._meta.get_field("child_links").related_model.objects
    pending = links.filter(
        parent=OuterRef("pk"), child__state=State.PENDING, child__has_derived=False, child__deleted_at=None
    )
    ended = actions.present().filter(Exists(pending), state__in=WITHOUT_SUCCESS)
    in_order = ended.order_by("updated_at", "pk")
    return sum(end_dependents(action, Action.objects.depending_on(action)) for action in in_order)


def not_executed_message(uuid: UUID, state: str) -> str:
    """Return the message of an action that was not executed because a dependency was unsuccessful."""
    return NOT_EXECUTED_BECAUSE[State(state)].fill(uuid=uuid)


def skip_planned(origins: Sequence[Action]) -> int:
    """Skip the planned actions of these skipped origins, and return their number.

    Actions that a user skipped before do not change. The caller has locked the plan's row.
    """
    if not (keys := deriving_keys(origins)):
        return 0
    return Action.objects.planned_by(keys).end_as(*end_with(origins[0].uuid, State.SKIPPED))


def restore_planned(origins: Sequence[Action]) -> int:
    """Restore the actions that were skipped with these origins, and return their number. The plan's row is locked."""
    if not (keys := deriving_keys(origins)):
        return 0
    return Action.objects.planned_by(keys, State.SKIPPED).restore()


def deriving_keys(actions: Sequence[Action]) -> list[int]:
    return [action.pk for action in actions if action.is_to_derive]


def require_pending_origins(actions: Sequence[Action]) -> None:
    """Refuse to restore actions whose origins are skipped.

    Raises:
        Conflict: the message names both.
    """
    planned = [action.pk for action in actions if action.is_planned]
    orphaned = Action.objects.filter(pk__in=planned, derived_from__state=State.SKIPPED).select_related("derived_from")
    for action in orphaned.order_by("pk")[:1] if planned else ():
        raise origin_skipped(action)
