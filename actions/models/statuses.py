"""The status of an action, which is derived from the states of the action, its plan and its parents.

The statuses are Senlin's (docs/compatibility.md, "Action statuses"). One table defines both the filter and the value.
"""

from functools import cache

from django.db.models import Case, CharField, F, Q, TextChoices, Value, When

from actions.models.actions import Action
from actions.models.plan_states import RUNNING_PLAN

State = Action.State


class Status(TextChoices):
    INIT = "INIT"
    READY = "READY"
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SKIPPED = "SKIPPED"


@cache
def conditions() -> dict[Status, Q]:
    """Return the condition of each status. Each action matches exactly one."""
    pending = Q(state=State.PENDING)
    in_running_plan = Q(action_plan__state__in=sorted(RUNNING_PLAN))
    waits = Action.objects.all().open_parents()
    return {
        Status.SUCCEEDED: Q(state=State.SUCCEEDED),
        Status.FAILED: Q(state=State.FAILED),
        Status.CANCELLED: Q(state=State.CANCELLED),
        Status.SKIPPED: Q(state=State.SKIPPED),
        Status.RUNNING: Q(state__in=[State.ONGOING, State.CANCELLING]),
        Status.SUSPENDED: Q(state=State.SUSPENDED),
        Status.INIT: pending & ~in_running_plan,
        Status.WAITING: pending & in_running_plan & waits,
        Status.READY: pending & in_running_plan & ~waits,
    }


@cache
def status_expression() -> Case:
    """Return the expression of an action's status."""
    first, last = list(conditions().items())[:-1], list(conditions())[-1]
    # The last status is the default, so that open parents are not queried twice.
    whens = [When(condition, then=Value(status.value)) for status, condition in first]
    return Case(*whens, default=Value(last.value), output_field=CharField())


def former_state() -> Case:
    """Return the expression of an action's state for clients that were written before actions could be SUSPENDED."""
    suspended = When(state=State.SUSPENDED, then=Value(State.ONGOING.value))
    return Case(suspended, default=F("state"), output_field=CharField())


def sortable_former_state() -> Case | F:
    """Return the same expression, or only the column, whose order an index serves, if no action is suspended."""
    return former_state() if Action.objects.filter(state=State.SUSPENDED).exists() else F("state")


def status_condition(statuses: list[Status]) -> Q:
    """Return the condition of actions that have one of these statuses."""
    return Q.create([conditions()[status] for status in statuses], connector=Q.OR)
