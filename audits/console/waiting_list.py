"""The list of PENDING servers, with the planned action for each."""

from collections.abc import Mapping
from typing import Any

import django_tables2 as tables
from django.db.models import QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from audits.engine.capacity import Answer, planned_answers
from cluster.console.filters import ServerFilters
from cluster.console.tables import AS_IT_IS
from cluster.models import Server
from watcher_site.console.columns import TABLE_ATTRIBUTES, NumberColumn, TimeColumn, fill_placeholders
from watcher_site.console.pages import ListPage
from watcher_site.templatetags.console import gigabytes, state_badge
from watcher_site.templatetags.names import named_link

# The descriptions of planned actions for servers, by type.
DESCRIPTIONS = {"rebuild": _("build in plan %(plan)s"), "reset_state": _("no capacity: set to error in plan %(plan)s")}


class WaitingFilters(ServerFilters):
    """Filters by name. All servers have the same state and no host."""

    state = node = None


class WaitingTable(tables.Table):
    name = tables.Column(linkify=("cluster:server", {"uuid": tables.A("uuid")}))
    project_id = tables.Column(verbose_name=_("project"), default="—")
    vcpus = NumberColumn(verbose_name=_("vCPU"), attrs=AS_IT_IS)
    memory = NumberColumn(verbose_name=_("memory (GB)"))
    disk = NumberColumn(verbose_name=_("disk (GB)"))
    created_at = TimeColumn(accessor="created_at", verbose_name=_("requested"))
    answer = tables.Column(empty_values=(), orderable=False, verbose_name=_("planned action"))

    class Meta:
        model = Server
        fields = ("name", "project_id", "vcpus", "memory", "disk", "created_at", "answer")
        attrs = TABLE_ATTRIBUTES

    def __init__(self, *arguments: Any, answers: Mapping[str, Answer], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.answers = answers

    def render_memory(self, value: int) -> str:
        return gigabytes(value)

    def render_answer(self, record: Any) -> SafeString | str:
        answer = self.answers.get(str(record.uuid))
        if answer is None:
            return gettext("none yet")
        plan = named_link(answer.plan_name or gettext("Action plan"), answer.plan, "plans:detail")
        return format_html(
            "{} {}", fill_placeholders(DESCRIPTIONS[answer.action_type], plan=plan), state_badge(answer.plan_state)
        )


class WaitingList(ListPage):
    """The list of PENDING servers, oldest first, which is the order in which capacity is assigned."""

    model = Server
    permission_required = ("cluster.view_server", "plans.view_actionplan")
    table_class = WaitingTable
    filterset_class = WaitingFilters
    template_name = "cluster/server_list.html"
    heading = _("Servers waiting for capacity")
    help_page = "concepts#server"
    guidance = _("No servers are waiting for capacity.")

    def get_queryset(self) -> QuerySet[Server]:
        return Server.objects.waiting().order_by("created_at", "pk")

    def get_table_kwargs(self) -> dict[str, Any]:
        return {"answers": planned_answers()}
