"""The console's tables of clusters, and of the policies that one has."""

from typing import Any

import django_tables2 as tables
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from cluster.models import Cluster, PolicyBinding
from cluster.models.clusters import UNLIMITED
from watcher_site.console.columns import TABLE_ATTRIBUTES, MessageColumn, NumberColumn, StateColumn, TimeColumn


class ClusterTable(tables.Table):
    name = tables.Column(linkify=("clusters:detail", {"uuid": tables.A("uuid")}))
    status = StateColumn()
    size = tables.Column(empty_values=(), orderable=False, verbose_name="nodes")
    profile = tables.Column(
        accessor="profile__name",
        verbose_name="profile",
        linkify=("cluster:profile", {"uuid": tables.A("profile__uuid")}),
    )
    status_reason = MessageColumn(verbose_name="reason")
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Cluster
        fields = ("name", "status", "size", "profile", "status_reason", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_size(self, record: Any) -> str:
        return sizes_in_words(record, record.node_count)


def sizes_in_words(cluster: Cluster, size: int) -> str:
    """Return how many nodes there are, are wanted, and may be."""
    limit = "no limit" if cluster.max_size == UNLIMITED else str(cluster.max_size)
    return f"{size} of {cluster.desired_capacity}, {cluster.min_size} to {limit}"


class BindingTable(tables.Table):
    """The policies of a cluster, with a way for each to be enabled, disabled and detached."""

    priority = NumberColumn()
    policy = tables.Column(
        accessor="policy__name",
        verbose_name="policy",
        linkify=("cluster:policy", {"uuid": tables.A("policy__uuid")}),
    )
    type = tables.Column(accessor="policy__type", verbose_name="type")
    enabled = tables.Column(verbose_name="is applied")
    last_op = TimeColumn(accessor="last_op", verbose_name="last done", default="")
    verbs = tables.Column(
        empty_values=(),
        verbose_name="",
        attrs={"td": {"class": "text-end"}},
    )

    class Meta:
        model = PolicyBinding
        fields = ("priority", "policy", "type", "enabled", "last_op", "verbs")
        attrs = TABLE_ATTRIBUTES
        orderable = False

    def render_enabled(self, value: bool) -> str:
        return "yes" if value else "no, disabled"

    def render_verbs(self, record: PolicyBinding) -> SafeString | str:
        may = self.request.user.has_perm
        names = [
            *(["disable" if record.enabled else "enable"] if may("cluster.change_policybinding") else []),
            *(["detach"] if may("cluster.delete_policybinding") else []),
        ]
        verbs = [{"name": name, "url": reverse(f"clusters:{name}", args=[record.uuid])} for name in names]
        return render_to_string("clusters/_binding_verbs.html", {"verbs": verbs, "binding": record}) if verbs else ""
