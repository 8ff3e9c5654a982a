"""What an action that failed or was cancelled takes with it: those that depend on it, where they cannot do without."""

from functools import cache
from uuid import UUID

from django.db.models import Exists, OuterRef

from actions.models import NOT_EXECUTED, Action
from actions.querysets import ActionQuerySet
from watcher_site.statements import Placeholder, Query

State = Action.State
# Those that end an action which is no success, and no harmless absence either.
WITHOUT_SUCCESS = frozenset({State.FAILED, State.CANCELLED})
WORDS = {State.FAILED: "failed", State.CANCELLED: "was cancelled"}


@cache
def locked_plan() -> Query:
    plans = Action._meta.get_field("action_plan").related_model.objects
    return Query(plans.filter(pk=Placeholder("plan")).select_for_update(no_key=True))


def are_bound(action: Action) -> bool:
    """Lock the plan's row until the transaction ends, and say whether what depends on the action ends with it.

    So it is where the plan says so, and always among actions that were derived together. Where the plan is being
    cancelled, that is what all the others end of.
    """
    for plan in locked_plan().rows(plan=action.action_plan_id):
        is_bound = action.derived_from_id is not None or plan.on_failure == plan.OnFailure.STOP
        return is_bound and plan.state != plan.State.CANCELLING
    return False


def end_dependents(action: Action) -> int:
    """Have what depends on a FAILED or CANCELLED action end as it did, recursively, and return how many these are.

    One statement, in the transaction in which the action itself is written, whose plan `are_bound` has locked.
    """
    return Action.objects.depending_on(action).end_as(action.state, not_executed(action.uuid, action.state))


def end_all_dependents(actions: ActionQuerySet) -> int:
    """Have what depends on those of these actions that ended without success end as they did, and return how many.

    For a plan that begins: people may have cancelled actions before they said that others end with them, or that
    others depend on them. The caller holds the plan's row until the transaction ends.
    """
    links = Action._meta.get_field("child_links").related_model.objects
    pending = links.filter(
        parent=OuterRef("pk"), child__state=State.PENDING, child__has_derived=False, child__deleted_at=None
    )
    ended = actions.present().filter(Exists(pending), state__in=WITHOUT_SUCCESS)
    return sum(end_dependents(action) for action in ended.order_by("updated_at", "pk"))


def not_executed(uuid: UUID, state: str) -> str:
    """Return what is said of an action which was not executed since one that it depends on ended without success."""
    return f"{NOT_EXECUTED} action {uuid}, which it depends on, {WORDS[State(state)]}."
