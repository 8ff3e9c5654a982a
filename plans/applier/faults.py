"""The end of a plan on which an applier failed, so that the other plans continue."""

import structlog
from django.db import transaction

from actions.messages import SET_ASIDE_AFTER_ERROR, SET_ASIDE_BECAUSE
from actions.models import Action
from actions.models.querysets import ActionQuerySet
from actions.types.hooks import clean_up
from plans.messages import ACTION_SET_ASIDE
from plans.models import ActionPlan
from plans.models.querysets import ActionPlanQuerySet
from watcher_site.models import Service
from watcher_site.outbox import payloads
from watcher_site.processes.worker import NOT_OF_ONE_RECORD
from watcher_site.refusals import Refused

log = structlog.get_logger(__name__)
ACTION_MESSAGE = ACTION_SET_ASIDE.text


def message_of(problem: BaseException, host: str) -> str:
    """Return the status message of a plan that is set aside. Other errors than refusals may hold secrets."""
    if isinstance(problem, Refused):
        return SET_ASIDE_BECAUSE.fill(reason=problem)
    return SET_ASIDE_AFTER_ERROR.fill(error=type(problem).__name__, host=host)


def set_aside(key: int, applier: Service, message: str) -> bool:
    """Fail a plan that is pending or owned by this applier.

    Actions that have not begun are CANCELLED. Actions whose worker is lost are FAILED, as their outcome is unknown.

    Returns:
        False, without a change, while other processes execute actions of the plan.
    """
    plans, actions = ActionPlan.objects.filter(pk=key).held_by(applier), Action.objects.filter(action_plan=key)
    if not plans.exists():
        return True
    if actions.under_living_worker().exists():
        return False
    # Action types lock rows of the cloud, which come before those of plans in the lock order.
    settle_begun(actions)
    try:
        end_plan(plans, actions, message)
    except NOT_OF_ONE_RECORD:
        raise
    except Exception as problem:
        log.error("plan ended without notifications", key=plans.values_list("pk", flat=True).first(), exc_info=problem)
        end_silently(plans, actions, message)
    return True


def settle_begun(actions: ActionQuerySet) -> None:
    """Call the clean-up of the types of actions that began and have not ended."""
    begun = actions.present().filter(state__in=Action.BEGUN).order_by("pk")
    for key, uuid in list(begun.values_list("pk", "uuid")):
        try:
            with transaction.atomic():
                clean_up(Action.objects.get(pk=key))
        except NOT_OF_ONE_RECORD:
            raise
        except Exception as problem:
            log.error("action not settled", action=str(uuid), exc_info=problem)


@transaction.atomic
def end_plan(plans: ActionPlanQuerySet, actions: ActionQuerySet, message: str) -> None:
    plan = plans.locked().first()
    if plan:
        actions.present().filter(state__in=Action.BEGUN).end_as(Action.State.FAILED, ACTION_MESSAGE)
        actions.cancel_pending(ACTION_MESSAGE)
        plan.fail(message)
        plan.fault = payloads.make_fault("ActionPlanFailed", message, __name__, set_aside.__name__)
        plan.save_state()


@transaction.atomic
def end_silently(plans: ActionPlanQuerySet, actions: ActionQuerySet, message: str) -> None:
    if plans.fail_silently(message):
        actions.end_silently(ACTION_MESSAGE)
