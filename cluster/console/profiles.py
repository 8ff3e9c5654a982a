"""Console pages of profiles, and the base class of the lists of nodes, profiles and policies."""

from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import gettext_lazy as _
from django_tables2 import RequestConfig

from cluster.console.filters import ProfileFilters
from cluster.console.tables import NodeTable, ProfileTable
from cluster.models import Node, Profile
from watcher_site.console.pages import ListPage, RecordPage
from watcher_site.console.paging import OrderedRows


class MemberList(ListPage):
    """A list of nodes, profiles or policies, with links to the other lists."""

    template_name = "cluster/member_list.html"


class ProfileList(MemberList):
    model = Profile
    permission_required = "cluster.view_profile"
    table_class = ProfileTable
    filterset_class = ProfileFilters
    heading = _("Profiles")
    help_page = "concepts#cluster"
    guidance = _("No profiles yet. Create them through the API, from microversion 1.12: POST /v1/profiles.")

    def get_queryset(self) -> QuerySet[Profile]:
        here = Count("nodes", filter=Q(nodes__deleted_at=None))
        return Profile.objects.present().annotate(node_count=here).order_by("name", "pk")


class ProfilePage(RecordPage):
    """A profile and its nodes."""

    model = Profile
    permission_required = "cluster.view_profile"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        nodes = Node.objects.present().filter(profile=self.object).select_related("cluster")
        table = NodeTable(OrderedRows(nodes), exclude=("profile", "index", "tainted"))
        configured = RequestConfig(self.request, paginate={"per_page": 50}).configure(table)
        return super().get_context_data(table=configured, **context)
