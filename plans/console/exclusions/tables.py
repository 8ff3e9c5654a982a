"""The console's tables of exclusions, and of what they keep from being executed."""

import django_filters
import django_tables2 as tables

from actions.exclusions.rules import force_in_words, what_in_words
from actions.models.exclusions import Exclusion
from watcher_site.console.columns import TABLE_ATTRIBUTES, DueColumn, MessageColumn, TimeColumn
from watcher_site.windows.wall_clock import describe_window

SWITCH = [("True", "enabled"), ("False", "disabled")]


class ExclusionFilters(django_filters.FilterSet):
    name = django_filters.CharFilter(label="Name", lookup_expr="icontains")
    owner = django_filters.CharFilter(label="Owner", lookup_expr="icontains")
    enabled = django_filters.ChoiceFilter(label="Enabled", choices=SWITCH, empty_label="any")

    class Meta:
        model = Exclusion
        fields: list[str] = []


class ExclusionTable(tables.Table):
    name = tables.Column(linkify=("exclusions:detail", {"uuid": tables.A("uuid")}), attrs={"td": {"class": "name"}})
    force = tables.Column(accessor="pk", verbose_name="in force", orderable=False)
    action_types = tables.Column(verbose_name="what", accessor="pk", orderable=False)
    window = tables.Column(verbose_name="when", accessor="pk", orderable=False)
    reason = MessageColumn()
    owner = tables.Column()
    expires_at = DueColumn(accessor="expires_at", verbose_name="expires", default="never")
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Exclusion
        fields = ("name", "force", "action_types", "window", "reason", "owner", "expires_at", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_force(self, record: Exclusion) -> str:
        return force_in_words(record)

    def render_action_types(self, record: Exclusion) -> str:
        return what_in_words(record)

    def render_window(self, record: Exclusion) -> str:
        return describe_window(record.window, record.zone) or "at every hour"
