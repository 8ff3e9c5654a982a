"""The filters of the console's list of history."""

from typing import Any
from uuid import UUID

import django_filters
from django import forms
from django.core.validators import ProhibitNullCharactersValidator

from watcher_site.console.filters import make_choices
from watcher_site.history.searching import narrow
from watcher_site.models import HistoryEntry
from watcher_site.models.history import HistoryQuerySet

MOMENT = {"type": "datetime-local", "step": "1"}
FORMATS = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"]


class TextFilter(django_filters.CharFilter):
    def __init__(self, **options: Any) -> None:
        limits = {"max_length": 255, "validators": [ProhibitNullCharactersValidator()]}
        super().__init__(**{"method": "narrow", **limits, **options})


class MomentFilter(django_filters.DateTimeFilter):
    def __init__(self, **options: Any) -> None:
        widget = forms.DateTimeInput(MOMENT, format="%Y-%m-%dT%H:%M:%S")
        super().__init__(method="narrow", input_formats=FORMATS, widget=widget, **options)


class HistoryFilters(django_filters.FilterSet):
    user = TextFilter(label="Who")
    deed = TextFilter(label="Event or kind of object", method="of_kind")
    object = TextFilter(label="Object", method="of_object")
    outcome = django_filters.ChoiceFilter(choices=make_choices(HistoryEntry.Outcome.values), empty_label="any")
    since = MomentFilter(label="Since (UTC)")
    before = MomentFilter(label="Before (UTC)")
    text = TextFilter(label="Text")

    class Meta:
        model = HistoryEntry
        fields: list[str] = []

    def narrow(self, entries: HistoryQuerySet, name: str, value: Any) -> HistoryQuerySet:
        return narrow(entries, {name: value})

    def of_kind(self, entries: HistoryQuerySet, _: str, value: str) -> HistoryQuerySet:
        """Filter by an event, such as ``action_plan.start``, or by the type of an object, such as ``action plan``."""
        word = value.strip().lower().replace(" ", "_")
        return narrow(entries, {"deed" if "." in word else "object_type": word})

    def of_object(self, entries: HistoryQuerySet, _: str, value: str) -> HistoryQuerySet:
        try:
            return entries.about(UUID(value.strip()))
        except ValueError:
            return narrow(entries, {"object_name": value.strip()})
