"""The table and the filters of the console's list of action plans."""

from typing import Any

import django_filters
import django_tables2 as tables
from django.utils.html import format_html
from django.utils.safestring import SafeString

from actions.event_details import generic_plan_message, sees_details
from plans.models import ActionPlan
from watcher_site.console.columns import (
    TABLE_ATTRIBUTES,
    MessageColumn,
    NameColumn,
    NumberColumn,
    StateColumn,
    TimeColumn,
    UUIDColumn,
    make_choices,
)
from watcher_site.templatetags.console import until


class ActionPlanFilters(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(choices=make_choices(ActionPlan.State.values), empty_label="any")
    strategy = django_filters.CharFilter(
        label="Strategy", field_name="strategy__display_name", lookup_expr="icontains"
    )
    audit = django_filters.CharFilter(label="Audit", field_name="audit__name", lookup_expr="icontains")

    class Meta:
        model = ActionPlan
        fields: list[str] = []


class PlanStateColumn(StateColumn):
    """The state of a plan, and how long it waits for its time or its window."""

    def render(self, record: ActionPlan, bound_column: Any) -> SafeString:
        badge = super().render(record, bound_column)
        opening = record.next_opening
        if opening is None:
            return badge
        what = "begins" if record.is_prunable else "continues"
        return format_html('{}<br><span class="secondary">{} {}</span>', badge, what, until(opening))


class PlanColumn(UUIDColumn):
    """A column of plans, with the requested operation of plans that no audit proposed."""

    def render(self, value: Any, record: Any = None) -> SafeString:
        link, operation = super().render(value), getattr(record, "operation", None)
        return format_html('{}<br><span class="secondary">{}</span>', link, operation) if operation else link


class ActionPlanTable(tables.Table):
    state = PlanStateColumn()
    uuid = PlanColumn("plans:detail", verbose_name="plan", orderable=False)
    audit = NameColumn(
        accessor="audit__name",
        verbose_name="audit",
        default="—",
        linkify=("audits:detail", {"uuid": tables.A("audit__uuid")}),
    )
    strategy = tables.Column(accessor="strategy__display_name", verbose_name="strategy", default="—")
    finished = NumberColumn(accessor="finished_actions", verbose_name="finished", orderable=False)
    status_message = MessageColumn(verbose_name="message")
    created_at = TimeColumn(accessor="created_at", verbose_name="created")

    class Meta:
        model = ActionPlan
        fields = ("state", "uuid", "audit", "strategy", "finished", "status_message", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_status_message(self, value: str, record: ActionPlan) -> SafeString:
        shown = value if sees_details(self.request.user) else generic_plan_message(record.state, value)
        return MessageColumn().render(str(shown))

    def render_finished(self, value: int, record: ActionPlan) -> SafeString:
        finished = format_html("{} of {}", value, getattr(record, "total_actions", 0))
        skipped = getattr(record, "skipped_actions", 0)
        more = format_html('<br><span class="secondary">{} skipped</span>', skipped) if skipped else ""
        return format_html("<span>{}{}</span>", finished, more)
