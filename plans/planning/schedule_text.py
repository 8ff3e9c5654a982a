"""Short texts about a plan's schedule."""

from django.utils.html import format_html
from django.utils.safestring import SafeString

from plans.models import ActionPlan
from watcher_site.templatetags.console import at_place, until
from watcher_site.windows.wall_clock import describe_window


def window_in_words(plan: ActionPlan) -> str:
    """Return a maintenance window by its hours, its days and its zone; nothing, where there is none."""
    return describe_window(plan.window, plan.zone)


def waiting_in_words(plan: ActionPlan) -> SafeString | str:
    """Return a sentence about the time or window that a plan waits for, empty if it does not wait."""
    if plan.state not in {plan.State.PENDING, plan.State.ONGOING}:
        return ""
    what = "It begins" if plan.state == plan.State.PENDING else "What is left of it begins"
    if plan.hours is None:
        return f"Its maintenance window is over: {what.lower()} once it has another one."
    opening = plan.next_opening
    return format_html("{} {}: {}.", what, until(opening), at_place(opening, plan.zone)) if opening else ""


def started_in_words(plan: ActionPlan) -> str:
    return f"Started. An applier takes it {'when its time comes' if plan.next_opening else 'from here'}."


def why_it_waits(plan: ActionPlan) -> str:
    """Return why no more actions of a plan begin for now; an empty text if they may."""
    if plan.is_suspended:
        return f"Suspended by {plan.suspended_by}: nothing more of it begins until somebody resumes it."
    if plan.next_opening:
        return f"Nothing more of it begins before {plan.next_opening:%Y-%m-%d %H:%M:%S} UTC."
    if plan.state in ActionPlan.SCHEDULABLE and plan.hours is None:
        return "Its maintenance window is over: nothing more of it begins until it has another one."
    return ""
