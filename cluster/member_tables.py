"""The console's tables of nodes and profiles."""

import django_tables2 as tables

from cluster.models import Node, Profile
from watcher_site.columns import TABLE_ATTRIBUTES, MessageColumn, NumberColumn, StateColumn, TimeColumn


class NodeTable(tables.Table):
    name = tables.Column(linkify=("cluster:member", {"uuid": tables.A("uuid")}))
    status = StateColumn()
    status_reason = MessageColumn(verbose_name="reason")
    profile = tables.Column(
        accessor="profile__name",
        verbose_name="profile",
        linkify=("cluster:profile", {"uuid": tables.A("profile__uuid")}),
    )
    role = tables.Column(default="", orderable=False)
    created_at = TimeColumn(accessor="created_at", verbose_name="made")

    class Meta:
        model = Node
        fields = ("name", "status", "status_reason", "profile", "role", "created_at")
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
