"""The pages of the clusters of the user's projects."""

from typing import Any
from uuid import UUID

import django_tables2 as tables
from django.contrib import messages
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as translate
from django.utils.translation import gettext_lazy as _
from django_tables2 import RequestConfig

from cluster.console.filters import ClusterFilters
from cluster.console.tables import NodeTable
from cluster.models import Cluster, Node, Profile, Server
from plans.console.clusters import operations, pages
from plans.console.clusters.forms import OperationForm
from plans.console.clusters.pages import ClusterTable, describe_sizes, unfinished_holders
from plans.console.projects.access import OwnProjectsMixin
from plans.console.projects.operations import OwnCreation, OwnOperation
from plans.operations.base import Operation
from watcher_site.console.columns import TABLE_ATTRIBUTES
from watcher_site.console.pages import FollowedPage, ListPage
from watcher_site.console.paging import OrderedRows
from watcher_site.messages import translate_message

VERBS = {
    "scale-out": ("cluster:scale_out", _("Scale out…"), "outline-primary"),
    "scale-in": ("cluster:scale_in", _("Scale in…"), "outline-primary"),
    "resize": ("cluster:resize", _("Resize…"), "outline-primary"),
    "check": ("cluster:check", _("Check…"), ""),
    "recover": ("cluster:recover", _("Recover…"), ""),
    "delete": ("cluster:delete", _("Delete…"), "outline-danger"),
}


class OwnClusterTable(ClusterTable):
    name = tables.Column(linkify=("projects:cluster", {"uuid": tables.A("uuid")}))
    profile = tables.Column(accessor="profile__name", verbose_name=_("profile"))
    status_reason = tables.Column(verbose_name=_("reason"), orderable=False, default="")

    class Meta:
        model = Cluster
        fields = ("name", "status", "size", "profile", "project_id", "status_reason", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_status_reason(self, value: str) -> str:
        return translate_message(value)


class OwnNodeTable(NodeTable):
    """The nodes of a cluster, each with its server."""

    name = tables.Column()
    status_reason = tables.Column(verbose_name=_("reason"), orderable=False, default="")
    server = tables.Column(
        accessor="physical_id",
        verbose_name=_("server"),
        orderable=False,
        default="—",
        linkify=lambda value: reverse("projects:server", args=[value]) if value else None,
    )
    profile = cluster = role = tainted = None

    class Meta:
        model = Node
        fields = ("index", "name", "status", "status_reason", "server", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_status_reason(self, value: str) -> str:
        return translate_message(value)

    def render_server(self, value: UUID, record: Any) -> str:
        """Return the name of the server, or the UUID if it has no record."""
        return record.server_name or str(value)


class OwnClusterList(OwnProjectsMixin, ListPage):
    model = Cluster
    project_policy = "cluster:get_all"
    table_class = OwnClusterTable
    filterset_class = ClusterFilters
    help_page = "concepts#cluster"
    heading = _("Project clusters")
    guidance = _("Your projects have no clusters. A cluster keeps a number of servers of one profile.")
    template_name = "projects/cluster_list.html"
    follows = True

    def get_queryset(self) -> QuerySet[Cluster]:
        here = Count("nodes", filter=Q(nodes__deleted_at=None))
        own = Cluster.objects.present().filter(project_id__in=self.projects)
        return own.select_related("profile").annotate(node_count=here).order_by("name", "pk")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return super().get_context_data(may_create=self.may_create("cluster:create"), **context)


class OwnClusterPage(OwnProjectsMixin, FollowedPage):
    model = Cluster
    project_policy = "cluster:get"
    template_name = "projects/cluster_detail.html"
    part_template = "projects/_cluster.html"

    def get_queryset(self) -> QuerySet[Cluster]:
        return super().get_queryset().select_related("profile")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        cluster: Cluster = self.object
        members = cluster.members()
        names = Server.objects.filter(uuid=OuterRef("physical_id")).values("name")
        table = OwnNodeTable(OrderedRows(members.annotate(server_name=Subquery(names[:1]))), prefix="node-")
        return super().get_context_data(
            sizes=describe_sizes(cluster, members.count()),
            members=RequestConfig(self.request, paginate={"per_page": 50}).configure(table),
            moving=unfinished_holders(cluster).exists(),
            verbs=[
                (reverse(f"projects:cluster-{name}", args=[cluster.uuid]), name, label, look)
                for name, (policy, label, look) in VERBS.items()
                if self.may_do(policy, cluster.project_id)
            ],
            **context,
        )


class NewCluster(OwnCreation, pages.NewCluster):
    project_policy = "cluster:create"

    def make_form(self, form_class: type[OperationForm], data: Any = None, **options: Any) -> OperationForm:
        form = super().make_form(form_class, data, **options)
        usable = Profile.objects.present().filter(project_id__in={"", *self.projects})
        form.fields["profile"].queryset = usable.order_by("name", "pk")  # type: ignore[attr-defined]
        return form

    def page_context(self) -> dict[str, Any]:
        return {"back": reverse("projects:clusters")}

    def redirect_after_creation(self, made: Operation, plan_only: bool) -> HttpResponse:
        messages.success(self.request, translate("Requested. This page shows the progress."))
        return redirect("projects:cluster", uuid=made.target)


class OwnClusterOperationView(OwnOperation):
    is_final = False

    def page_address_of(self, record: Cluster) -> str:
        return reverse("projects:cluster", args=[record.uuid])


class ScaleOut(OwnClusterOperationView, operations.ScaleOut):
    project_policy = "cluster:scale_out"


class ScaleIn(OwnClusterOperationView, operations.ScaleIn):
    project_policy = "cluster:scale_in"


class Resize(OwnClusterOperationView, operations.Resize):
    project_policy = "cluster:resize"


class Check(OwnClusterOperationView, operations.Check):
    project_policy = "cluster:check"


class Recover(OwnClusterOperationView, operations.Recover):
    project_policy = "cluster:recover"


class Delete(OwnClusterOperationView, operations.Delete):
    project_policy = "cluster:delete"

    def redirect_url(self, record: Cluster, done: bool) -> str:
        return reverse("projects:clusters") if done else super().redirect_url(record, done)
