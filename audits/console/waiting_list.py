"""The console's list of PENDING servers, with the planned action for each."""

from collections.abc import Mapping
from typing import Any

import django_tables2 as tables
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from audits.engine.capacity import Answer, answers
from cluster.console.filters import ServerFilters
from cluster.models import Server
from watcher_site.console.columns import TABLE_ATTRIBUTES, NumberColumn, TimeColumn
from watcher_site.console.pages import ListPage
from watcher_site.templatetags.console import short, state_badge

# What a plan means to do for a server, by the type of the action.
WORDS = {"rebuild": "build in", "reset_state": "no capacity: set to error in"}


class WaitingFilters(ServerFilters):
    """By name alone: all have the same state, and no node."""

    state = node = None


class WaitingTable(tables.Table):
    name = tables.Column(linkify=("cluster:server", {"uuid": tables.A("uuid")}))
    project_id = tables.Column(verbose_name="project", default="—")
    vcpus = NumberColumn(verbose_name="VCPUs")
    memory = NumberColumn(verbose_name="memory (MB)")
    disk = NumberColumn(verbose_name="disk (GB)")
    created_at = TimeColumn(accessor="created_at", verbose_name="requested")
    answer = tables.Column(empty_values=(), orderable=False, verbose_name="planned action")

    class Meta:
        model = Server
        fields = ("name", "project_id", "vcpus", "memory", "disk", "created_at", "answer")
        attrs = TABLE_ATTRIBUTES

    def __init__(self, *arguments: Any, answers: Mapping[str, Answer], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.answers = answers

    def render_answer(self, record: Any) -> SafeString | str:
        answer = self.answers.get(str(record.uuid))
        if answer is None:
            return "none yet"
        return format_html(
            '{} plan <a class="uuid" href="{}">{}</a> {}',
            WORDS[answer.action_type],
            reverse("plans:detail", args=[answer.plan]),
            short(answer.plan),
            state_badge(answer.plan_state),
        )


class WaitingList(ListPage):
    """The oldest first, as they are served."""

    model = Server
    permission_required = ("cluster.view_server", "plans.view_actionplan")
    table_class = WaitingTable
    filterset_class = WaitingFilters
    template_name = "cluster/server_list.html"
    heading = "Servers waiting for capacity"
    guidance = "No servers are waiting for capacity."

    def get_queryset(self) -> QuerySet[Server]:
        return Server.objects.waiting().order_by("created_at", "pk")

    def get_table_kwargs(self) -> dict[str, Any]:
        return {"answers": answers()}
