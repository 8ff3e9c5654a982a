"""The console's tables of nodes, profiles and policies."""

import django_tables2 as tables

from cluster.models import Node, Policy, Profile
from watcher_site.console.columns import TABLE_ATTRIBUTES, MessageColumn, NumberColumn, StateColumn, TimeColumn


class NodeTable(tables.Table):
    index = NumberColumn(verbose_name="no.", orderable=False)
    name = tables.Column(linkify=("cluster:member", {"uuid": tables.A("uuid")}))
    status = StateColumn()
    status_reason = MessageColumn(verbose_name="reason")
    profile = tables.Column(
        accessor="profile__name",
        verbose_name="profile",
        linkify=("cluster:profile", {"uuid": tables.A("profile__uuid")}),
    )
    cluster = tables.Column(
        accessor="cluster__name",
        verbose_name="cluster",
        default="",
        linkify=("clusters:detail", {"uuid": tables.A("cluster__uuid")}),
    )
    role = tables.Column(default="", orderable=False)
    tainted = tables.Column(orderable=False)
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Node
        fields = ("index", "name", "status", "status_reason", "profile", "cluster", "role", "tainted", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_tainted(self, value: bool) -> str:
        return "tainted" if value else ""


class PolicyTable(tables.Table):
    name = tables.Column(linkify=("cluster:policy", {"uuid": tables.A("uuid")}))
    type = tables.Column()
    cluster_count = NumberColumn(verbose_name="clusters", orderable=False)
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Policy
        fields = ("name", "type", "cluster_count", "created_at")
        attrs = TABLE_ATTRIBUTES


class ProfileTable(tables.Table):
    name = tables.Column(linkify=("cluster:profile", {"uuid": tables.A("uuid")}))
    flavor = tables.Column(accessor="spec__flavor", verbose_name="flavor", orderable=False)
    node_count = NumberColumn(verbose_name="nodes", orderable=False)
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Profile
        fields = ("name", "flavor", "node_count", "created_at")
        attrs = TABLE_ATTRIBUTES
