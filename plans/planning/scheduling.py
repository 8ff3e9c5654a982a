"""The schedule of a plan, which is a start time, a maintenance window, or both, and descriptions of it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from plans import messages
from plans.models import ActionPlan
from plans.models.action_plans import Schedule
from plans.models.querysets import ActionPlanQuerySet
from plans.models.refusals import PlanOperation, require_plan_allowing
from watcher_site.history import differences, record
from watcher_site.refusals import Invalid
from watcher_site.request_context import CallingContext
from watcher_site.templatetags.console import at_place, until
from watcher_site.windows.wall_clock import describe_window, read_moment, read_window, read_zone, serialize_window

Guard = Callable[[int], AbstractContextManager[Any]]
SCHEDULE_COLUMNS = ("start_at", "zone", "window")
COLUMNS = (*SCHEDULE_COLUMNS, "opens_at", "closes_at")


@transaction.atomic
def schedule(
    plan: ActionPlan, changes: Mapping[str, Any], start: bool = False, caller: CallingContext | None = None
) -> ActionPlan:
    """Set the schedule of a plan, start it if ``start`` is true, and return it.

    The row of the plan is locked, as when an action begins, so that no action begins outside of the new hours.

    Args:
        changes: values of `SCHEDULE_COLUMNS`, in the formats of `watcher_site.windows.wall_clock`; None removes one.
        caller: the calling context of the user who starts the plan.

    Raises:
        NotFound: the plan was deleted.
        Invalid: a value is invalid.
        Conflict: the state of the plan does not allow it.
        TransitionNotAllowed: ``start`` is true, and the plan is not RECOMMENDED.
    """
    current = ActionPlan.objects.locked().find(plan.uuid)
    if not start:
        require_plan_allowing(PlanOperation.SCHEDULE, current)
        if "start_at" in changes:
            require_plan_allowing(PlanOperation.SET_START_TIME, current)
    before = hours_of(current)
    set_schedule(current, changes)
    current.save_changes(COLUMNS)
    current.actions.restart_timeouts(max(timezone.now(), current.opens_at or timezone.now()))
    record("action_plan.schedule", current, details=differences(before, hours_of(current)))
    if start:
        current.launch(caller)
    return current


def hours_of(plan: ActionPlan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in SCHEDULE_COLUMNS}


def set_schedule(plan: ActionPlan, changes: Mapping[str, Any]) -> None:
    """Set the schedule of a plan and its next hours. Raises: `Invalid`."""
    now = timezone.now()
    zone = read_zone(changes.get("zone", plan.zone) or "UTC")
    window = read_window(changes.get("window", plan.window), zone)
    start_at = read_moment("start_at", changes["start_at"], zone, now) if "start_at" in changes else plan.start_at
    hours = Schedule(start_at, window).hours(now)
    if hours is None:
        raise Invalid(messages.WINDOW_OVER_BEFORE_PLAN.text)
    plan.start_at, plan.zone, plan.window = start_at, zone.key, serialize_window(window)
    plan.opens_at, plan.closes_at = hours


def inherited_schedule(plan: ActionPlan) -> dict[str, Any]:
    """Return the columns of the schedule for a plan that continues this one. Times in the past are omitted."""
    now = timezone.now()
    try:
        window = plan.schedule.window
    except Invalid:
        return {}  # The time zone is unknown on this machine.
    start_at = plan.start_at if plan.start_at and plan.start_at > now else None
    hours = Schedule(start_at, window).hours(now)
    if hours is None:
        return {"zone": plan.zone}
    opens_at, closes_at = hours
    return {
        "zone": plan.zone,
        "window": plan.window,
        "start_at": start_at,
        "opens_at": opens_at,
        "closes_at": closes_at,
    }


def renew_hours(plans: ActionPlanQuerySet, guarding: Guard = nullcontext) -> int:
    """Set the next hours of the plans whose hours are over, and return the number of plans that have next hours.

    Args:
        guarding: returns the context manager in which the plan with a key is changed.
    """
    number = 0
    for plan in plans.closed():
        with guarding(plan.pk):
            hours = next_hours(plan)
            if hours:
                number += store_hours(plan, *hours)
    return number


@transaction.atomic
def store_hours(plan: ActionPlan, opens_at: datetime | None, closes_at: datetime | None) -> int:
    """Set the next hours of a plan, unless another process did. Restarts the timeouts of its waiting actions then."""
    same = ActionPlan.objects.filter(pk=plan.pk, closes_at=plan.closes_at)
    number = same.update(opens_at=opens_at, closes_at=closes_at)
    if number:
        plan.actions.restart_timeouts(opens_at or timezone.now())
    return number


def next_hours(plan: ActionPlan) -> tuple[Any, Any] | None:
    """Return the next hours of a plan, or None if its window is over or its time zone is unknown.

    Raises:
        Invalid: its window is invalid.
    """
    try:
        zone = read_zone(plan.zone)
    except Invalid:
        return None  # Another applier may know the time zone.
    return Schedule(plan.start_at, read_window(plan.window, zone)).hours(timezone.now())


def describe_plan_window(plan: ActionPlan) -> str:
    """Return a text with the hours, days and time zone of a maintenance window, empty without one."""
    return describe_window(plan.window, plan.zone)


def describe_waiting(plan: ActionPlan) -> SafeString | str:
    """Return a sentence about the time or window that a plan waits for, empty if it does not wait."""
    if plan.state not in {plan.State.PENDING, plan.State.ONGOING}:
        return ""
    is_new = plan.state == plan.State.PENDING
    if plan.hours is None:
        if is_new:
            return gettext("The maintenance window is over. The plan begins after a new window is set.")
        return gettext("The maintenance window is over. The remaining actions begin after a new window is set.")
    opening = plan.next_opening
    what = gettext("The plan begins") if is_new else gettext("The remaining actions begin")
    return format_html("{} {}: {}.", what, until(opening), at_place(opening, plan.zone)) if opening else ""


def describe_start(plan: ActionPlan) -> str:
    if plan.next_opening:
        return gettext("Action plan started. An applier will run it at its scheduled time.")
    return gettext("Action plan started. An applier will run it.")


def explain_waiting(plan: ActionPlan) -> str:
    """Return the reason why no actions of a plan begin for now, or an empty text."""
    if plan.is_suspended:
        return messages.SUSPENDED_BY.fill(user=plan.suspended_by)
    if plan.next_opening:
        return messages.WAITS_FOR_OPENING.fill(time=f"{plan.next_opening:%Y-%m-%d %H:%M:%S}")
    if plan.state in ActionPlan.SCHEDULABLE and plan.hours is None:
        return messages.WINDOW_CLOSED_FOR_EVER.text
    return ""
