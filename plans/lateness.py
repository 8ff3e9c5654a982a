"""An applier looks which of its actions wait for longer than they may for what they derived."""

from actions.lateness import time_out
from actions.models import Action
from plans.leases import PlanLease
from plans.models import ActionPlan
from watcher_site.models import Service
from watcher_site.state import ConcurrentTransition


def end_late(applier: Service) -> int:
    """Have those end, in the plans of an applier of which anything may begin now, and return how many they are.

    One query finds them all. While a plan is suspended or its window closed, nothing of it is late.
    """
    plans = ActionPlan.objects.filter(state=ActionPlan.State.ONGOING, applier=applier).open()
    number = 0
    for action in Action.objects.overdue().filter(action_plan__in=plans).select_related("action_plan"):
        try:
            time_out(action, PlanLease.of(action.action_plan, applier))
        except ConcurrentTransition:
            continue  # It goes on, or was cancelled or given more time, or another applier has its plan.
        number += 1
    return number
