"""When a plan is to begin, as people fill it in."""

from copy import copy
from typing import Any
from zoneinfo import ZoneInfo

from django import forms

from plans.models import ActionPlan
from plans.schedules import WINDOW, zones
from plans.scheduling import apply
from plans.windows import WEEKDAYS
from watcher_site.refusals import Invalid


def picker(kind: str) -> forms.TextInput:
    return forms.TextInput({"type": kind})


def text_field(kind: str, label: str, help_text: str = "") -> forms.CharField:
    """Return a field whose text is read where the API's is: the form adds no rules of its own."""
    return forms.CharField(label=label, help_text=help_text, required=False, widget=picker(kind))


class ScheduleForm(forms.Form):
    """``wishes`` of the cleaned data is what `plans.scheduling.schedule` takes: just what was changed."""

    start_at = text_field("datetime-local", "Not before", "Left empty, it begins as soon as an applier is free.")
    zone = forms.ChoiceField(label="Time zone", help_text="All times here are those of a clock on the wall there.")
    opens = text_field("time", "Window opens", "Left empty, there is no maintenance window.")
    closes = text_field("time", "Window closes", "At an earlier hour than it opens: on the next day.")
    weekdays = forms.MultipleChoiceField(
        choices=[(day, day.title()) for day in WEEKDAYS],
        required=False,
        label="It opens on",
        help_text="None chosen: every day.",
        widget=forms.CheckboxSelectMultiple,
    )
    first_day = text_field("date", "First day")
    last_day = text_field("date", "Last day")

    def __init__(self, plan: ActionPlan, data: Any = None) -> None:
        super().__init__(data, initial=held(plan))
        self.plan = plan
        field: Any = self.fields["zone"]
        field.choices = [(name, name) for name in zones()]
        if not plan.is_prunable:
            del self.fields["start_at"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        wishes: dict[str, Any] = {"zone": cleaned["zone"]} if "zone" in cleaned else {}
        start_at = cleaned.get("start_at") or None
        # Another zone makes another moment of the same time.
        if "start_at" in self.changed_data or (start_at and "zone" in self.changed_data):
            wishes["start_at"] = start_at
        window = {name: cleaned[name] or None for name in WINDOW if name in cleaned}
        wishes["window"] = window if any(window.values()) else None
        try:
            apply(copy(self.plan), wishes)
        except Invalid as refusal:
            self.blame(str(refusal))
        return {**cleaned, "wishes": wishes}

    def blame(self, refusal: str) -> None:
        """Put a refusal beside the field that it begins with, or above all of them."""
        name, _, words = refusal.partition(": ")
        field = name.removeprefix("window.")
        if field in self.fields:
            self.add_error(field, words[:1].upper() + words[1:])
        else:
            self.add_error(None, refusal)


def held(plan: ActionPlan) -> dict[str, Any]:
    """Return what the fields show of a plan's schedule."""
    window = plan.window or {}
    zone = plan.zone if plan.zone in zones() else "UTC"
    begins = plan.start_at and plan.start_at.astimezone(ZoneInfo(zone))
    weekdays = window.get("weekdays") or []
    return {
        **{name: window.get(name) for name in WINDOW},
        "weekdays": [] if len(weekdays) == len(WEEKDAYS) else weekdays,
        "zone": zone,
        "start_at": f"{begins:%Y-%m-%dT%H:%M}" if begins else None,
    }
