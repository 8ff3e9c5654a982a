"""The console's table of stacks."""

from typing import Any

import django_tables2 as tables
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cluster.models import Stack
from watcher_site.console.columns import TABLE_ATTRIBUTES, MessageColumn, NumberColumn, StateColumn, TimeColumn


class StackTable(tables.Table):
    name = tables.Column(linkify=("stacks:detail", {"uuid": tables.A("uuid")}))
    status = StateColumn(accessor="shown_status", order_by=("status", "pk"))
    health = tables.Column(empty_values=(), orderable=False)
    resource_count = NumberColumn(verbose_name="resources", orderable=False)
    project_id = tables.Column(verbose_name="project", default="—")
    status_reason = MessageColumn(accessor="shown_reason", verbose_name="reason")
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Stack
        fields = ("name", "status", "health", "resource_count", "project_id", "status_reason", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_health(self, record: Any) -> SafeString | str:
        if record.is_failed or record.has_failed:
            return format_html('<span class="state state-failed">{}</span>', "needs attention")
        return format_html('<span class="state state-succeeded">{}</span>', "well")
