"""What a plan's schedule means, in a few words for people."""

from django.utils.html import format_html
from django.utils.safestring import SafeString

from plans.models import ActionPlan
from plans.windows import WEEKDAYS
from watcher_site.templatetags.console import at_place, until


def window_in_words(plan: ActionPlan) -> str:
    """Return a maintenance window by its hours, its days and its zone; nothing, where there is none."""
    if not plan.window:
        return ""
    window = plan.window
    days = window["weekdays"]
    parts = [f"{window['opens']}–{window['closes']}"]  # noqa: RUF001 (a dash between times)
    parts += [day.title() for day in days] if len(days) < len(WEEKDAYS) else ["every day"]
    for name, word in (("first_day", "from"), ("last_day", "until")):
        if window[name]:
            parts.append(f"{word} {window[name]}")
    return f"{', '.join(parts)} ({plan.zone})"


def waiting_in_words(plan: ActionPlan) -> SafeString | str:
    """Say that a plan waits for its time or its window; nothing, where it does not."""
    if plan.state not in {plan.State.PENDING, plan.State.ONGOING}:
        return ""
    what = "It begins" if plan.state == plan.State.PENDING else "What is left of it begins"
    if plan.hours is None:
        return f"Its maintenance window is over: {what.lower()} once it has another one."
    opening = plan.next_opening
    return format_html("{} {}: {}.", what, until(opening), at_place(opening, plan.zone)) if opening else ""


def started_in_words(plan: ActionPlan) -> str:
    return f"Started. An applier takes it {'when its time comes' if plan.next_opening else 'from here'}."
