"""The timeout of actions that wait for their derived actions."""

from contextlib import nullcontext, suppress

from actions.engine.timeouts import time_out
from actions.models import Action
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning.scheduling import Guard
from watcher_site.models import Service
from watcher_site.state_machine import ConcurrentTransition


def fail_overdue_actions(applier: Service, guarding: Guard = nullcontext) -> int:
    """Fail the actions of an applier's plans that waited beyond their timeout, and return their number.

    They are found with one query. No action times out while its plan is suspended or its window is closed.

    Args:
        guarding: a function that returns a context manager for the work on one plan, called with the plan's key.
    """
    plans = ActionPlan.objects.filter(state=ActionPlan.State.ONGOING, applier=applier).open()
    number = 0
    for action in Action.objects.overdue().filter(action_plan__in=plans).select_related("action_plan"):
        # It may be resumed, cancelled or given more time at the same time, or another applier may adopt its plan.
        with guarding(action.action_plan_id), suppress(ConcurrentTransition):
            time_out(action, PlanLease.of(action.action_plan, applier))
            number += 1
    return number
