"""The console's pages of clusters."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django_tables2 import RequestConfig

from actions.console.tables import ActionTable
from actions.models import Action
from cluster.console.filters import ClusterFilters
from cluster.console.profiles import MemberList
from cluster.console.tables import NodeTable
from cluster.models import Cluster, PolicyBinding
from plans.console.clusters.forms import NewClusterForm
from plans.console.clusters.tables import BindingTable, ClusterTable, sizes_in_words
from plans.console.creation import CreationPage
from plans.console.views import MOVING
from plans.operations.base import Operation, RequestOptions
from plans.operations.clusters import create_cluster
from watcher_site.console.pages import RecordPage
from watcher_site.links import linked

RECENT = 10


class ClusterList(MemberList):
    model = Cluster
    permission_required = "cluster.view_cluster"
    table_class = ClusterTable
    filterset_class = ClusterFilters
    template_name = "clusters/cluster_list.html"
    heading = "Clusters"
    guidance = "There are no clusters. A cluster is as many servers of one profile as are wanted: create one."

    def get_queryset(self) -> QuerySet[Cluster]:
        here = Count("nodes", filter=Q(nodes__deleted_at=None))
        return Cluster.objects.present().select_related("profile").annotate(node_count=here).order_by("name", "pk")


class ClusterPage(RecordPage):
    """One cluster: its members, its policies, what was done to it, and what is. To htmx, the part that moves alone."""

    model = Cluster
    permission_required = "cluster.view_cluster"

    def get_template_names(self) -> list[str]:
        return ["clusters/_cluster.html" if getattr(self.request, "htmx", False) else "clusters/cluster_detail.html"]

    def get_queryset(self) -> QuerySet[Cluster]:
        return super().get_queryset().select_related("profile")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        cluster: Cluster = self.object
        members = cluster.members().order_by("index", "pk")
        bindings = PolicyBinding.objects.present().filter(cluster=cluster).select_related("policy")
        actions = Action.objects.present().filter(target=str(cluster.uuid)).select_related("action_plan")
        recent = list(actions.order_by("-pk")[:RECENT])
        holders = list(unfinished_holders(cluster))
        return super().get_context_data(
            sizes=sizes_in_words(cluster, members.count()),
            members=self.configure(NodeTable(members, exclude=("profile", "cluster", "role"), prefix="node-"), 50),
            bindings=self.configure(BindingTable(bindings.order_by("priority", "pk")), None),
            recent=ActionTable(recent, exclude=("resource",), orderable=False),
            holders=holders,
            moving=bool(holders) or any(map(is_coming, recent)),
            **context,
        )

    def configure(self, table: Any, per_page: int | None) -> Any:
        return RequestConfig(self.request, paginate={"per_page": per_page} if per_page else False).configure(table)


def is_coming(action: Action) -> bool:
    """Return whether an action was started with its plan and has not ended."""
    return action.state not in Action.FINAL and action.action_plan.state in MOVING


def unfinished_holders(cluster: Cluster) -> QuerySet[Action]:
    """Return the actions that hold a cluster now: a lock ends with its action."""
    return Action.objects.unfinished().filter(uuid__in=cluster.locks.values("action")).order_by("pk")


class NewCluster(CreationPage):
    history_event = "cluster.create"
    permission_required = "cluster.add_cluster"
    form_class = NewClusterForm
    template_name = "clusters/cluster_form.html"

    def create(self, inputs: dict[str, Any], options: RequestOptions) -> Operation:
        return create_cluster(**inputs, options=options)

    def answer(self, made: Operation, plan_only: bool) -> HttpResponse:
        if plan_only:
            return redirect("plans:detail", uuid=made.action_plan)
        messages.success(self.request, linked(f"Requested: plan {made.action_plan} creates its nodes."))
        return redirect("clusters:detail", uuid=made.target)
