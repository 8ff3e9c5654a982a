"""The console's tables of the cloud."""

from collections.abc import Callable
from typing import Any

import django_tables2 as tables
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cluster.models import ComputeNode, Server
from watcher_site.columns import TABLE_ATTRIBUTES, NumberColumn, StateColumn
from watcher_site.templatetags.console import state_badge, use_bar


class UseColumn(tables.Column):
    """How much of one capacity of a node its servers take."""

    def __init__(self, resource: str, unit: str, scale: Callable[[float], float] = float) -> None:
        super().__init__(
            accessor=f"used_{resource}",
            verbose_name="vCPU" if resource == "vcpus" else resource,
            attrs={"td": {"class": "use"}},
        )
        self.resource, self.unit, self.scale = resource, unit, scale

    def render(self, value: int, record: ComputeNode) -> SafeString:
        capacity = getattr(record, f"capacity_{self.resource}")
        label = f"{self.scale(value):.4g} of {self.scale(capacity):.4g} {self.unit}"
        return format_html("{}{}", label, render_to_string("_bar.html", use_bar(value, capacity, label)))


def gigabytes(megabytes: float) -> float:
    return megabytes / 1024


class ComputeNodeTable(tables.Table):
    hostname = tables.Column(linkify=("cluster:node", {"uuid": tables.A("uuid")}))
    state = StateColumn(verbose_name="service", order_by=("state", "status"))
    vcpus = UseColumn("vcpus", "vCPU")
    memory = UseColumn("memory", "GB", gigabytes)
    disk = UseColumn("disk", "GB")
    disabled_reason = tables.Column(verbose_name="reason", default="", orderable=False)

    class Meta:
        model = ComputeNode
        fields = ("hostname", "state", "vcpus", "memory", "disk", "disabled_reason")
        attrs = TABLE_ATTRIBUTES

    def render_state(self, record: ComputeNode) -> SafeString:
        return format_html("{} {}", state_badge(record.state), state_badge(record.status))


class ServerTable(tables.Table):
    name = tables.Column(linkify=("cluster:server", {"uuid": tables.A("uuid")}))
    state = StateColumn()
    node = tables.Column(
        accessor="node__hostname",
        verbose_name="node",
        default="none",
        linkify=("cluster:node", {"uuid": tables.A("node__uuid")}),
    )
    vcpus = NumberColumn(verbose_name="vCPU")
    memory = NumberColumn(verbose_name="memory, MB")
    disk = NumberColumn(verbose_name="disk, GB")
    task_state = tables.Column(verbose_name="doing", default="")

    class Meta:
        model = Server
        fields = ("name", "state", "node", "vcpus", "memory", "disk", "task_state")
        attrs = TABLE_ATTRIBUTES

    def render_node(self, value: str, record: Any) -> str:
        return f"{value} → {record.destination.hostname}" if record.destination else value
