"""The console's pages of clusters and of their nodes."""

from typing import Any

import django_tables2 as tables
from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_tables2 import RequestConfig

from actions.console.tables import ActionTable
from actions.models import Action
from cluster.console.filters import ClusterFilters, NodeFilters
from cluster.console.profiles import MemberList
from cluster.console.tables import NodeTable
from cluster.models import Cluster, Node, PolicyBinding, Server
from cluster.models.clusters import UNLIMITED
from plans.console.clusters.forms import NewClusterForm
from plans.console.creation import CreationPage
from plans.console.views import MOVING
from plans.operations.base import Operation, RequestOptions
from plans.operations.clusters import create_cluster
from watcher_site.authorization.permissions import may, target_of_page
from watcher_site.console.columns import TABLE_ATTRIBUTES, NumberColumn, StateColumn, StoredMessageColumn, TimeColumn
from watcher_site.console.pages import FollowedPage, RecordPage
from watcher_site.console.paging import OrderedRows
from watcher_site.templatetags.console import linked

RECENT = 10
# The buttons beside a policy of a cluster: their labels, and their names for screen readers.
BINDING_VERBS = {
    "enable": (_("Enable…"), _("Enable %(policy)s")),
    "disable": (_("Disable…"), _("Disable %(policy)s")),
    "detach": (_("Detach…"), _("Detach %(policy)s")),
}


class ClusterTable(tables.Table):
    name = tables.Column(linkify=("clusters:detail", {"uuid": tables.A("uuid")}))
    status = StateColumn()
    size = tables.Column(empty_values=(), orderable=False, verbose_name=_("nodes"))
    profile = tables.Column(
        accessor="profile__name",
        verbose_name=_("profile"),
        linkify=("cluster:profile", {"uuid": tables.A("profile__uuid")}),
    )
    project_id = tables.Column(verbose_name=_("project"), default="—")
    status_reason = StoredMessageColumn(verbose_name=_("reason"))
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"))

    class Meta:
        model = Cluster
        fields = ("name", "status", "size", "profile", "project_id", "status_reason", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_size(self, record: Any) -> str:
        return describe_sizes(record, record.node_count)


def describe_sizes(cluster: Cluster, size: int) -> str:
    """Return a text with the current, the desired, the minimum and the maximum number of nodes."""
    limit = gettext("unlimited") if cluster.max_size == UNLIMITED else number_format(cluster.max_size)
    numbers = {"size": size, "desired": cluster.desired_capacity, "least": cluster.min_size}
    sizes = {name: number_format(number) for name, number in numbers.items()} | {"most": limit}
    return _("%(size)s of %(desired)s (min %(least)s, max %(most)s)") % sizes


BINDING_PERMISSIONS = ("cluster.change_policybinding", "cluster.delete_policybinding")


class BindingTable(tables.Table):
    """The policies of a cluster, with buttons to enable, disable and detach them."""

    priority = NumberColumn()
    policy = tables.Column(
        accessor="policy__name",
        verbose_name=_("policy"),
        linkify=("cluster:policy", {"uuid": tables.A("policy__uuid")}),
    )
    type = tables.Column(accessor="policy__type", verbose_name=_("type"))
    enabled = tables.Column(verbose_name=_("enabled"))
    last_op = TimeColumn(accessor="last_op", verbose_name=_("last operation"), default="")
    verbs = tables.Column(
        empty_values=(),
        verbose_name=_("operations"),
        attrs={"td": {"class": "text-end"}},
    )

    class Meta:
        model = PolicyBinding
        fields = ("priority", "policy", "type", "enabled", "last_op", "verbs")
        attrs = TABLE_ATTRIBUTES
        orderable = False

    def before_render(self, request: HttpRequest) -> None:
        target = target_of_page(request)
        if not any(may(request.user, permission, target) for permission in BINDING_PERMISSIONS):
            self.columns.hide("verbs")

    def render_enabled(self, value: bool) -> str:
        return gettext("yes") if value else gettext("no")

    def render_verbs(self, record: PolicyBinding) -> SafeString | str:
        target = target_of_page(self.request)
        names = [
            *(
                ["disable" if record.enabled else "enable"]
                if may(self.request.user, "cluster.change_policybinding", target)
                else []
            ),
            *(["detach"] if may(self.request.user, "cluster.delete_policybinding", target) else []),
        ]
        policy = {"policy": record.policy.name}
        verbs = [
            {
                "name": name,
                "url": reverse(f"clusters:{name}", args=[record.uuid]),
                "label": BINDING_VERBS[name][0],
                "title": BINDING_VERBS[name][1] % policy,
            }
            for name in names
        ]
        return render_to_string("clusters/_binding_verbs.html", {"verbs": verbs, "binding": record}) if verbs else ""


class ClusterList(MemberList):
    model = Cluster
    permission_required = "cluster.view_cluster"
    table_class = ClusterTable
    filterset_class = ClusterFilters
    template_name = "clusters/cluster_list.html"
    heading = _("Clusters")
    help_page = "concepts#cluster"
    follows = True
    guidance = _("No clusters yet. A cluster keeps a number of servers of one profile.")

    def get_queryset(self) -> QuerySet[Cluster]:
        here = Count("nodes", filter=Q(nodes__deleted_at=None))
        return Cluster.objects.present().select_related("profile").annotate(node_count=here).order_by("name", "pk")


class ClusterPage(FollowedPage):
    """One cluster: its members, its policies, and its past and current actions."""

    model = Cluster
    permission_required = "cluster.view_cluster"

    template_name = "clusters/cluster_detail.html"
    part_template = "clusters/_cluster.html"

    def get_queryset(self) -> QuerySet[Cluster]:
        return super().get_queryset().select_related("profile")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        cluster: Cluster = self.object
        members = cluster.members().order_by("index", "pk")
        bindings = PolicyBinding.objects.present().filter(cluster=cluster).select_related("policy")
        actions = Action.objects.present().filter(target=str(cluster.uuid)).with_plans()
        recent = list(actions.order_by("-pk")[:RECENT])
        holders = list(unfinished_holders(cluster))
        return super().get_context_data(
            sizes=describe_sizes(cluster, members.count()),
            members=self.configure(
                NodeTable(OrderedRows(members), exclude=("profile", "cluster", "role"), prefix="node-"), 50
            ),
            bindings=self.configure(BindingTable(bindings.order_by("priority", "pk")), None),
            recent=ActionTable(recent, exclude=("resource",), orderable=False),
            holders=holders,
            moving=bool(holders) or any(map(is_expected, recent)),
            **context,
        )

    def configure(self, table: Any, per_page: int | None) -> Any:
        return RequestConfig(self.request, paginate={"per_page": per_page} if per_page else False).configure(table)


def is_expected(action: Action) -> bool:
    """Return whether an action is unfinished and belongs to a started plan."""
    return action.state not in Action.FINAL and action.action_plan.state in MOVING


def unfinished_holders(cluster: Cluster) -> QuerySet[Action]:
    """Return the unfinished actions that hold a lock of a cluster."""
    return Action.objects.unfinished().filter(uuid__in=cluster.locks.values("action")).order_by("pk")


class NewCluster(CreationPage):
    history_event = "cluster.create"
    permission_required = "cluster.add_cluster"
    form_class = NewClusterForm
    template_name = "clusters/cluster_form.html"

    def page_context(self) -> dict[str, Any]:
        return {"back": reverse("clusters:list")}

    def create(self, inputs: dict[str, Any], options: RequestOptions) -> Operation:
        return create_cluster(**inputs, options=options)

    def redirect_after_creation(self, made: Operation, plan_only: bool) -> HttpResponse:
        if plan_only:
            return redirect("plans:detail", uuid=made.action_plan)
        messages.success(
            self.request, linked(_("Requested: plan %(plan)s creates the nodes.") % {"plan": made.action_plan})
        )
        return redirect("clusters:detail", uuid=made.target)


class NodeList(MemberList):
    model = Node
    permission_required = "cluster.view_node"
    table_class = NodeTable
    filterset_class = NodeFilters
    heading = _("Cluster nodes")
    help_page = "concepts#cluster"
    guidance = _("No nodes yet. Create a cluster, or a node through the API, from microversion 1.12: POST /v1/nodes.")

    def get_table_kwargs(self) -> dict[str, Any]:
        return {"exclude": ("index", "tainted")}

    def get_queryset(self) -> QuerySet[Node]:
        return Node.objects.present().select_related("profile", "cluster")


class NodePage(RecordPage):
    """One node, its profile and its server."""

    model = Node
    permission_required = "cluster.view_node"

    def get_queryset(self) -> QuerySet[Node]:
        return super().get_queryset().select_related("profile", "cluster")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        server = Server.objects.present().filter(uuid=self.object.physical_id).first()
        return super().get_context_data(server=server, **context)
