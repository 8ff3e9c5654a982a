"""Signals to whole plans."""

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from actions.models import Action
from actions.operations.signals import signal_actions
from plans.messages import SUSPENDED_AFTER_RESTORE
from plans.models import ActionPlan
from plans.models.querysets import ActionPlanQuerySet
from plans.models.refusals import PLAN_STATES, PlanOperation, is_plan_allowing, plan_conflict
from watcher_site.history import record, record_many
from watcher_site.state_machine import TransitionNotAllowed

Signal = Action.Signal


def signal_plan(plan: ActionPlan, signal: Action.Signal, by: str) -> None:
    """Send a signal to a plan.

    CANCEL cancels the plan. After SUSPEND, no actions begin and running actions pause, until RESUME. A repeated
    SUSPEND or RESUME has no effect.

    Args:
        by: the name of the user.

    Raises:
        NotFound: the plan was deleted.
        Conflict: the state of the plan does not allow the signal.
        ConcurrentTransition: the plan changed its state meanwhile.
    """
    if signal != Signal.CANCEL:
        return suspend_or_resume(plan, signal, by)
    try:
        return plan.abandon(by)
    except TransitionNotAllowed as problem:
        raise plan_conflict(PlanOperation.CANCEL, plan) from problem


@transaction.atomic
def suspend_or_resume(plan: ActionPlan, signal: Action.Signal, by: str) -> None:
    """Suspend or resume a plan.

    The lock on its row ensures that each action is either already running, or does not begin.
    """
    current = ActionPlan.objects.locked().find(plan.uuid)
    suspends = signal == Signal.SUSPEND
    operation = PlanOperation.SUSPEND if suspends else PlanOperation.RESUME
    if not is_plan_allowing(operation, current):
        raise plan_conflict(operation, current)
    signal_actions(current.actions.present(), signal, by)
    if not suspends:
        current.actions.restart_timeouts(timezone.now())
    rows = ActionPlan.objects.filter(pk=current.pk)
    if current.is_suspended != suspends:
        rows.update(suspended_by=by if suspends else None, status_message=None)
    rows.update(signals=F("signals") + 1)
    record("action_plan.signal", current, details={"signal": signal})


def restored_plans() -> ActionPlanQuerySet:
    """Select the plans that would continue in a restored database, except plans with the message of this operation."""
    affected = ActionPlan.objects.present().filter(state__in=PLAN_STATES[PlanOperation.SUSPEND])
    return affected.exclude(status_message=SUSPENDED_AFTER_RESTORE.text)


@transaction.atomic
def suspend_restored_plans(by: str) -> list[ActionPlan]:
    """Suspend all plans that would continue in a restored database, and return them.

    Plans that a user had suspended before the backup get the message, too. Plans that have it are unchanged, so that
    the operation can be repeated. The number of statements does not depend on the number of plans and actions.
    """
    text, now = SUSPENDED_AFTER_RESTORE.text, timezone.now()
    plans = list(restored_plans().order_by("pk").locked())
    if plans:
        keys = [plan.pk for plan in plans]
        begun = Action.objects.present().filter(action_plan__in=keys).select_related("action_plan")
        signal_actions(begun, Signal.SUSPEND, by)
        suspended_by = Coalesce("suspended_by", Value(by))
        ActionPlan.objects.filter(pk__in=keys).update(
            suspended_by=suspended_by, status_message=text, signals=F("signals") + 1, updated_at=now
        )
        record_many("action_plan.signal", plans, message=text, details={"signal": Signal.SUSPEND})
    return plans
