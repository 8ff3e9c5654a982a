"""The pages of the servers of the user's projects. As in Nova, they do not show compute nodes."""

from typing import Any

import django_tables2 as tables
from django import forms
from django.db.models import QuerySet
from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as translate
from django.utils.translation import gettext_lazy as _

from cluster.console.filters import ServerFilters
from cluster.console.tables import ServerTable
from cluster.models import Server
from plans.console import marks
from plans.console.projects.access import OwnProjectsMixin
from plans.console.servers import mark_of
from plans.operations.servers import delete_server, give_up_server, rebuild_server
from watcher_site.console.columns import TABLE_ATTRIBUTES
from watcher_site.console.pages import ListPage, OperationView, RecordPage
from watcher_site.console.resumable_forms import FormOperationView
from watcher_site.request_context import CallingContext, caller_of


class OwnServerTable(ServerTable):
    name = tables.Column(linkify=("projects:server", {"uuid": tables.A("uuid")}))
    node = None
    project_id = tables.Column(verbose_name=_("project"))

    class Meta:
        model = Server
        fields = ("name", "state", "health", "vcpus", "memory", "disk", "task_state", "project_id")
        attrs = TABLE_ATTRIBUTES


class OwnServerFilters(ServerFilters):
    node = None


class OwnServerList(OwnProjectsMixin, ListPage):
    model = Server
    project_policy = "server:get_all"
    table_class = OwnServerTable
    filterset_class = OwnServerFilters
    help_page = "concepts#server"
    heading = _("Project servers")
    guidance = _("Your projects have no servers.")
    follows = True

    def get_queryset(self) -> QuerySet[Server]:
        projects = Server.objects.present().filter(project_id__in=self.projects)
        return projects.defer("node")


class OwnServer(OwnProjectsMixin):
    model = Server


class OwnServerPage(OwnServer, RecordPage):
    project_policy = "server:get"
    template_name = "projects/server_detail.html"

    def get_queryset(self) -> QuerySet[Server]:
        return super().get_queryset().select_related("new_flavor")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        server: Server = self.object
        return super().get_context_data(
            mark=mark_of(server),
            may_change=self.may_do("server:act", server.project_id),
            may_delete=self.may_do("server:delete", server.project_id),
            may_mark=self.may_do("server:mark", server.project_id),
            **context,
        )


class OwnServerOperationView(OwnServer, OperationView):
    is_change = True
    project_policy = "server:act"

    def redirect_url(self, record: Server, done: bool) -> str:
        return reverse("projects:server", args=[record.uuid])

    def caller(self, server: Server) -> CallingContext:
        return caller_of(self.request, server.project_id)


class DeleteServer(OwnServerOperationView):
    project_policy = "server:delete"
    verb, question = _("delete the server"), _("Delete the server?")
    consequence = _("The server and its local disk are deleted. This cannot be undone.")

    def perform(self, record: Server) -> str:
        delete_server(record, self.caller(record))
        return translate("Deletion requested: %(name)s.") % {"name": record.name}

    def redirect_url(self, record: Server, done: bool) -> str:
        return reverse("projects:servers") if done else super().redirect_url(record, done)


class ResetServer(OwnServerOperationView):
    """Sets a server that waits for capacity to ERROR."""

    history_event = "server.reset_state"
    verb, question = _("reset the state of the server"), _("Reset the state of the server to ERROR?")
    consequence = _("The server no longer waits for capacity. It can be rebuilt or deleted later.")
    look = "primary"

    def perform(self, record: Server) -> str:
        give_up_server(record, self.caller(record))
        return translate("Reset requested: %(name)s.") % {"name": record.name}


class OwnServerMark(OwnServer):
    is_change = True
    project_policy = "server:mark"

    def redirect_url(self, record: Server, done: bool) -> str:
        return reverse("projects:server", args=[record.uuid])


class MarkServer(OwnServerMark, marks.MarkServer):
    pass


class ClearServer(OwnServerMark, marks.ClearServer):
    pass


class RebuildForm(forms.Form):
    image = forms.CharField(
        label=_("Image"),
        max_length=255,
        required=False,
        help_text=_("The id of an image. Leave empty for the server's own."),
    )

    def add_refusal(self, refusal: str) -> None:
        self.add_error(None, refusal)


class RebuildServer(FormOperationView, OwnServerOperationView):
    history_event = "server.rebuild"
    verb, question = _("rebuild the server"), _("Rebuild the server?")
    consequence = _("Its root disk is replaced by an image: the data on it is lost.")
    look = "danger"

    def form(self, record: Server, data: QueryDict | None = None) -> RebuildForm:
        return RebuildForm(data)

    def perform(self, record: Server) -> str:
        rebuild_server(record, self.submitted.cleaned_data["image"] or None, self.caller(record))
        return translate("Rebuild requested: %(name)s.") % {"name": record.name}
