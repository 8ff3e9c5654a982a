"""Form fields for a window and its time zone."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from watcher_site.messages import Text
from watcher_site.windows.maintenance import WEEKDAY_NAMES, WEEKDAYS
from watcher_site.windows.wall_clock import WINDOW, require_zone, zones

SELECTED = mark_safe(" selected")


def picker(kind: str) -> forms.TextInput:
    return forms.TextInput({"type": kind})


def text_field(kind: str, label: Text, help_text: Text = "") -> forms.CharField:
    """Return a field without validation of its own: the text is parsed by the code that also parses the API's."""
    return forms.CharField(label=label, help_text=help_text, required=False, widget=picker(kind))


class LongSelect(forms.Select):
    """A select with hundreds of options, each of which Django would render with a template."""

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            ((key, SELECTED if str(key) == str(value) else "", label) for key, label in self.choices),
        )
        attributes = self.build_attrs(self.attrs, {"name": name, **(attrs or {})})
        return format_html("<select{}>{}</select>", flatatt(attributes), options)


class WindowFields(forms.Form):
    """The fields of a window in a form with further fields."""

    zone = forms.ChoiceField(
        label=_("Time zone"), help_text=_("The time zone of all times in this form."), widget=LongSelect
    )
    opens = text_field("time", _("Window opens"), _("Leave empty for no maintenance window."))
    closes = text_field("time", _("Window closes"), _("If earlier than the opening: on the next day."))
    weekdays = forms.MultipleChoiceField(
        choices=list(WEEKDAY_NAMES.items()),
        required=False,
        label=_("Opening days"),
        help_text=_("None selected: every day."),
        widget=forms.CheckboxSelectMultiple,
    )
    first_day = text_field("date", _("First day"))
    last_day = text_field("date", _("Last day"))

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        field: Any = self.fields["zone"]
        field.choices = [(name, name) for name in zones()]

    def window_of(self, cleaned: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the window in the format of the API, or None if the fields are empty."""
        window = {name: cleaned[name] or None for name in WINDOW if name in cleaned}
        return window if any(window.values()) else None

    def add_refusal(self, refusal: str) -> None:
        """Add a refusal to the field that its message names, or to the form."""
        name, _, reason = refusal.partition(": ")
        field = name.removeprefix("window.")
        if field in self.fields:
            self.add_error(field, reason[:1].upper() + reason[1:])
        else:
            self.add_error(None, refusal)


def window_values(window: Mapping[str, Any] | None, zone: str) -> dict[str, Any]:
    """Return the values of the fields for a stored window."""
    window = window or {}
    weekdays = window.get("weekdays") or []
    return {
        **{name: window.get(name) for name in WINDOW},
        "weekdays": [] if len(weekdays) == len(WEEKDAYS) else weekdays,
        "zone": require_zone(zone),
    }
