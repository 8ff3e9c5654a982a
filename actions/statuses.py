"""The status of an action, as seed 3 defines them: it follows from the action's state, its plan's and its parents'.

The one table here gives both the filter and what is shown.
"""

from functools import cache

from django.db.models import Case, CharField, Q, TextChoices, Value, When

from actions.models import Action

State = Action.State


class Status(TextChoices):
    INIT = "INIT"
    READY = "READY"
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"


@cache
def conditions() -> dict[Status, Q]:
    """Return what is true of the actions of each status: each action has exactly one."""
    plans = Action._meta.get_field("action_plan").related_model
    pending = Q(state=State.PENDING)
    under_way = Q(action_plan__state__in=sorted(plans.RUNNING))
    waits = Action.objects.all().open_parents()
    return {
        Status.SUCCEEDED: Q(state=State.SUCCEEDED),
        Status.FAILED: Q(state=State.FAILED),
        Status.CANCELLED: Q(state=State.CANCELLED),
        Status.SKIPPED: Q(state=State.SKIPPED),
        Status.RUNNING: Q(state__in=[State.ONGOING, State.CANCELLING]),
        Status.INIT: pending & ~under_way,
        Status.WAITING: pending & under_way & waits,
        Status.READY: pending & under_way & ~waits,
    }


@cache
def shown() -> Case:
    """Return the expression of an action's status."""
    first, last = list(conditions().items())[:-1], list(conditions())[-1]
    # What is left is the last one: nobody need look for open parents twice.
    whens = [When(condition, then=Value(status.value)) for status, condition in first]
    return Case(*whens, default=Value(last.value), output_field=CharField())


def having(statuses: list[Status]) -> Q:
    """Return the condition of actions that have one of these statuses."""
    return Q.create([conditions()[status] for status in statuses], connector=Q.OR)
