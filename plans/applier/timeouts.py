"""Fail the actions of an applier's plans that wait beyond their timeout for the actions that they derived."""

from contextlib import nullcontext, suppress

from actions.engine.timeouts import time_out
from actions.models import Action
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning.scheduling import Guard
from watcher_site.models import Service
from watcher_site.state_machine import ConcurrentTransition


def end_late(applier: Service, guarding: Guard = nullcontext) -> int:
    """Fail the actions of an applier's plans that waited beyond their timeout, and return their number.

    One query finds them all. While a plan is suspended or its window is closed, none of its actions times out.

    Args:
        guarding: a context manager for the work at each plan, called with its key.
    """
    plans = ActionPlan.objects.filter(state=ActionPlan.State.ONGOING, applier=applier).open()
    number = 0
    for action in Action.objects.overdue().filter(action_plan__in=plans).select_related("action_plan"):
        # It may be resumed, cancelled or given more time at this moment, or another applier may run its plan.
        with guarding(action.action_plan_id), suppress(ConcurrentTransition):
            time_out(action, PlanLease.of(action.action_plan, applier))
            number += 1
    return number
