"""A person has a whole plan wait, go on, or end."""

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from actions.models import Action
from actions.operations.signals import signal_actions
from plans.models import ActionPlan
from watcher_site.history import record
from watcher_site.refusals import Conflict
from watcher_site.state_machine import TransitionNotAllowed

Signal = Action.Signal


def signal_plan(plan: ActionPlan, signal: Action.Signal, by: str) -> None:
    """Give a plan a signal: CANCEL gives it up, SUSPEND has it begin nothing more, and what runs wait, until RESUME.

    To suspend or resume it twice does no harm.

    Args:
        by: the name of the person.

    Raises:
        Conflict: its state does not allow it.
        ConcurrentTransition: it has just become final.
    """
    if signal != Signal.CANCEL:
        return wait_or_go_on(plan, signal, by)
    try:
        return plan.abandon(by)
    except TransitionNotAllowed as problem:
        raise unexpected(plan, ActionPlan.CANCELLABLE) from problem


@transaction.atomic
def wait_or_go_on(plan: ActionPlan, signal: Action.Signal, by: str) -> None:
    """Suspend or resume a plan.

    The lock on its row makes sure that an action is either found running, or does not begin.
    """
    rows = ActionPlan.objects.present().filter(pk=plan.pk)
    standing = rows.locked().first()
    if standing is None or standing.state not in ActionPlan.SUSPENDABLE:
        raise unexpected(standing or plan, ActionPlan.SUSPENDABLE)
    suspends = signal == Signal.SUSPEND
    signal_actions(standing.actions.present(), signal, by)
    if not suspends:
        standing.actions.wait_anew(timezone.now())
    if standing.is_suspended != suspends:
        rows.update(suspended_by=by if suspends else None)
    rows.update(signals=F("signals") + 1)
    record("action_plan.signal", standing, details={"signal": signal})


def unexpected(plan: ActionPlan, expected: frozenset[ActionPlan.State]) -> Conflict:
    names = ", ".join(state for state in ActionPlan.State if state in expected)
    return Conflict(
        f"ActionPlan ({plan.uuid}) is in state ({plan.state}) while expected state must be one of ({names})."
    )
