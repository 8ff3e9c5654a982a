"""The console's list of audits."""

import django_tables2 as tables

from audits.models import Audit
from watcher_site.console.columns import (
    TABLE_ATTRIBUTES,
    DueColumn,
    MessageColumn,
    NameColumn,
    StateColumn,
    TimeColumn,
)


class AuditTable(tables.Table):
    state = StateColumn()
    name = NameColumn(linkify=("audits:detail", {"uuid": tables.A("uuid")}))
    audit_type = tables.Column(verbose_name="type")
    goal = tables.Column(accessor="goal__display_name", verbose_name="goal")
    strategy = tables.Column(accessor="strategy__display_name", verbose_name="strategy", default="—")
    next_run = DueColumn(accessor="planned_run", order_by="next_run_time", verbose_name="next run", default="—")
    status_message = MessageColumn(verbose_name="message")
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Audit
        fields = ("state", "name", "audit_type", "goal", "strategy", "next_run", "status_message", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_audit_type(self, record: Audit) -> str:
        """Return the word as the API has it."""
        return record.audit_type
