"""The console's pages of servers."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from cluster.console.filters import ServerFilters
from cluster.console.infrastructure import volumes_with_relations
from cluster.console.tables import ServerTable, VolumeTable
from cluster.models import Server
from cluster.operations.marks import Mark, find_mark
from watcher_site.console.pages import ListPage, RecordPage
from watcher_site.refusals import Invalid


class ServerList(ListPage):
    model = Server
    permission_required = "cluster.view_server"
    table_class = ServerTable
    filterset_class = ServerFilters
    template_name = "cluster/server_list.html"
    heading = _("Servers")
    help_page = "concepts#server"
    follows = True
    guidance = _("No servers. Load a topology with manage.py load_topology FILE.")

    def get_queryset(self) -> QuerySet[Server]:
        return Server.objects.present().select_related("node", "destination")


class ServerPage(RecordPage):
    model = Server
    permission_required = "cluster.view_server"

    def get_queryset(self) -> QuerySet[Server]:
        return super().get_queryset().select_related("node", "destination", "new_flavor")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        attached = volumes_with_relations().filter(attachments__server=self.object, attachments__deleted_at=None)
        table = VolumeTable(attached, exclude=("servers",), orderable=False)
        return super().get_context_data(table=table, mark=mark_of(self.object), **context)


def mark_of(server: Server) -> Mark | None:
    """Return the mark on the health of a server, or None if the row that would store it cannot be identified."""
    try:
        return find_mark(server)
    except Invalid:
        return None
