"""The final state of a plan that has no more actions to execute."""

from collections.abc import Mapping

from actions.models import Action, ActionEvent
from plans.messages import ACTION_STUCK, NOT_ABORTED, NOT_BEGUN
from plans.models import ActionPlan
from plans.models.summaries import summarize
from watcher_site.outbox import payloads

State = Action.State
STUCK = ACTION_STUCK.text


def complete_plan(plan: ActionPlan, counts: Mapping[str, int], stuck: bool = False) -> None:
    """Write the final state of a plan. ``counts`` has the number of its actions by state, all of which are final.

    The state is FAILED if an action FAILED, or was ``stuck`` because it could never begin; CANCELLED if a user
    cancelled one of its actions; otherwise SUCCEEDED, even if actions cancelled themselves. A cancelled plan is
    CANCELLED, unless all actions had finished before.

    Raises:
        ConcurrentTransition: the plan was cancelled or taken over meanwhile.
    """
    cancelling = plan.state == ActionPlan.State.CANCELLING
    opening = (plan.status_message or "") if cancelling else ""
    if cancelling and has_failed_abort(plan):
        plan.fail(summarize(plan.actions.all(), counts, f"{opening} {NOT_ABORTED.text}"))
    elif cancelling and counts.get(State.CANCELLED):
        plan.finish_cancel(summarize(plan.actions.all(), counts, opening))
    elif counts.get(State.FAILED):
        plan.fail(summarize(plan.actions.all(), counts))
    elif stuck:
        plan.fail(NOT_BEGUN.text)
    elif counts.get(State.CANCELLED) and has_cancelled_by_signal(plan):
        plan.finish_cancel(summarize(plan.actions.all(), counts))
    else:
        plan.succeed(summarize(plan.actions.all(), counts))
    if plan.state == ActionPlan.State.FAILED:
        plan.fault = payloads.make_fault(
            "ActionPlanFailed", plan.status_message or "", __name__, complete_plan.__name__
        )
    plan.save_state()


def has_failed_abort(plan: ActionPlan) -> bool:
    failed = ActionEvent.objects.filter(action__action_plan=plan, event="abort", result=ActionEvent.Result.ERROR)
    return failed.filter(action__state=State.FAILED).exists()


def has_cancelled_by_signal(plan: ActionPlan) -> bool:
    signals = ActionEvent.objects.filter(action__action_plan=plan, event=f"signal_{Action.Signal.CANCEL.lower()}")
    return signals.filter(action__state=State.CANCELLED).exists()
