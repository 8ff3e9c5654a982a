"""The console's list of action plans."""

import django_tables2 as tables
from django.utils.html import format_html
from django.utils.safestring import SafeString

from plans.models import ActionPlan
from watcher_site.columns import (
    TABLE_ATTRIBUTES,
    MessageColumn,
    NameColumn,
    NumberColumn,
    StateColumn,
    TimeColumn,
    UUIDColumn,
)


class ActionPlanTable(tables.Table):
    state = StateColumn()
    uuid = UUIDColumn("plans:detail", verbose_name="plan", orderable=False)
    audit = NameColumn(
        accessor="audit__name",
        verbose_name="audit",
        default="—",
        linkify=("audits:detail", {"uuid": tables.A("audit__uuid")}),
    )
    strategy = tables.Column(accessor="strategy__display_name", verbose_name="strategy", default="—")
    finished = NumberColumn(accessor="finished_actions", verbose_name="finished", orderable=False)
    status_message = MessageColumn(verbose_name="message")
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = ActionPlan
        fields = ("state", "uuid", "audit", "strategy", "finished", "status_message", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_finished(self, value: int, record: ActionPlan) -> SafeString:
        finished = format_html("{} of {}", value, getattr(record, "total_actions", 0))
        skipped = getattr(record, "skipped_actions", 0)
        more = format_html('<br><span class="secondary">{} skipped</span>', skipped) if skipped else ""
        return format_html("<span>{}{}</span>", finished, more)
