"""Console tables of the cloud, and of nodes, profiles and policies."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from cluster.models import ComputeNode, Node, Policy, Pool, Profile, Server, Volume
from cluster.operations.marks import mark_reasons_of
from watcher_site.console.columns import TABLE_ATTRIBUTES, NumberColumn, StateColumn, StoredMessageColumn, TimeColumn
from watcher_site.templatetags.console import amount, gigabytes, state_badge, use_bar
from watcher_site.templatetags.names import name

NAME = {"td": {"class": "name"}}
# Keeps the lower-case letter of "vCPU" in the header.
AS_IT_IS = {"th": {"class": "text-end as-it-is"}, "td": {"class": "text-end text-nowrap number"}}


class UseColumn(tables.Column):
    """A column with the used share of a capacity, from two attributes of the record."""

    def __init__(
        self, used: str, capacity: str, unit: str, scale: Callable[[float], float] = float, **options: Any
    ) -> None:
        super().__init__(accessor=used, attrs={"td": {"class": "use"}, "th": {"class": "as-it-is"}}, **options)
        self.capacity, self.unit, self.scale = capacity, unit, scale

    def render(self, value: int, record: Any) -> SafeString:
        capacity = getattr(record, self.capacity)
        used, total = (amount(self.scale(number)) for number in (value, capacity))
        label = _("%(used)s of %(capacity)s %(unit)s") % {"used": used, "capacity": total, "unit": self.unit}
        return format_html("{}{}", label, use_bar(value, capacity, label))


def render_route(place: str, destination: str | None) -> SafeString:
    """Return the name of the place of an object, and that to which it moves, if any."""
    return format_html("{} → {}", name(place), name(destination)) if destination else name(place)


def convert_to_gigabytes(megabytes: float) -> float:
    return megabytes / 1024


class ComputeNodeTable(tables.Table):
    hostname = tables.Column(linkify=("cluster:node", {"uuid": tables.A("uuid")}), attrs=NAME)
    state = StateColumn(verbose_name=_("service"), order_by=("state", "status"))
    power_state = StateColumn(verbose_name=_("power"))
    zone = tables.Column()
    aggregates = tables.Column(empty_values=(), orderable=False, verbose_name=_("aggregates"), attrs=NAME)
    vcpus = UseColumn("used_vcpus", "capacity_vcpus", "vCPU", verbose_name=_("vCPU"))
    memory = UseColumn("used_memory", "capacity_memory", "GB", convert_to_gigabytes, verbose_name=_("Memory"))
    disk = UseColumn("used_disk", "capacity_disk", "GB", verbose_name=_("Disk"))
    disabled_reason = tables.Column(
        verbose_name=_("reason"), default="", orderable=False, attrs={"td": {"class": "name"}}
    )

    class Meta:
        model = ComputeNode
        fields = (
            *("hostname", "state", "power_state", "zone", "aggregates"),
            *("vcpus", "memory", "disk", "disabled_reason"),
        )
        attrs = TABLE_ATTRIBUTES

    def render_state(self, record: ComputeNode) -> SafeString:
        return format_html("{} {}", state_badge(record.state), state_badge(record.status))

    def render_aggregates(self, record: Any) -> SafeString:
        return format_html_join(", ", "{}", ((name(aggregate.name),) for aggregate in record.aggregates.all()))


class ServerTable(tables.Table):
    name = tables.Column(linkify=("cluster:server", {"uuid": tables.A("uuid")}))
    state = StateColumn()
    node = tables.Column(
        accessor="node__hostname",
        verbose_name=_("node"),
        default=_("none"),
        linkify=("cluster:node", {"uuid": tables.A("node__uuid")}),
    )
    vcpus = NumberColumn(verbose_name=_("vCPU"), attrs=AS_IT_IS)
    memory = NumberColumn(verbose_name=_("memory (GB)"))
    disk = NumberColumn(verbose_name=_("disk (GB)"))
    task_state = tables.Column(verbose_name=_("task"), default="")
    health = tables.Column(empty_values=(), orderable=False)

    class Meta:
        model = Server
        fields = ("name", "state", "health", "node", "vcpus", "memory", "disk", "task_state")
        attrs = TABLE_ATTRIBUTES

    @cached_property
    def marks(self) -> dict[str, str | None]:
        """Return the reasons of marks on the servers of this page by UUID, in two queries."""
        return mark_reasons_of({str(row.record.uuid): row.record.unhealthy_reason for row in self.paginated_rows})

    def render_memory(self, value: int) -> str:
        return gigabytes(value)

    def render_health(self, record: Server) -> str:
        reason = self.marks[str(record.uuid)]
        return format_html('<span title="{}">{}</span>', reason, _("marked unhealthy")) if reason is not None else ""

    def render_node(self, value: str, record: Any) -> SafeString:
        return render_route(value, record.destination and record.destination.hostname)


class HostedServerTable(ServerTable):
    """The servers of one compute node, with migrations instead of the name of the node."""

    node = tables.Column(accessor="destination", verbose_name=_("migration"), default="", orderable=False)

    # Options of tables are not inherited without it.
    class Meta(ServerTable.Meta):
        pass

    def render_node(self, value: Any, record: Any) -> SafeString:
        return render_route(record.node.hostname, value.hostname)


class PoolTable(tables.Table):
    name = tables.Column(attrs=NAME)
    zone = tables.Column(accessor="storage_node__zone")
    state = StateColumn(accessor="storage_node__state", verbose_name=_("service"))
    total_volumes = NumberColumn(verbose_name=_("volumes"))
    used = UseColumn("used_capacity_gb", "total_capacity_gb", "GB", verbose_name=_("Used"), orderable=False)
    provisioned = UseColumn("provisioned_capacity_gb", "virtual_capacity_gb", "GB", verbose_name=_("Provisioned"))

    class Meta:
        model = Pool
        fields = ("name", "zone", "state", "total_volumes", "used", "provisioned")
        attrs = TABLE_ATTRIBUTES

    def render_state(self, record: Any) -> SafeString:
        node = record.storage_node
        return format_html("{} {}", state_badge(node.state), state_badge(node.status))

    def render_total_volumes(self, value: int, record: Pool) -> SafeString:
        """Link to the volumes, because a pool has no page of its own."""
        query = urlencode({"pool": record.name})
        return format_html('<a href="{}?{}">{}</a>', reverse("cluster:volumes"), query, value)


class VolumeTable(tables.Table):
    status = StateColumn()
    size = NumberColumn(verbose_name=_("size (GB)"))
    pool = tables.Column(accessor="pool__name", verbose_name=_("pool"), default=_("none"))
    volume_type = tables.Column(accessor="volume_type__name", verbose_name=_("type"), default=_("none"))
    servers = tables.Column(empty_values=(), orderable=False, verbose_name=_("attached to"))
    migration_status = tables.Column(verbose_name=_("migration"), default="")

    class Meta:
        model = Volume
        fields = ("name", "status", "size", "pool", "volume_type", "servers", "migration_status")
        attrs = TABLE_ATTRIBUTES

    def render_pool(self, value: str, record: Any) -> SafeString:
        return render_route(value, record.destination and record.destination.name)

    def render_servers(self, record: Any) -> SafeString:
        servers = [attachment.server for attachment in record.attachments.all()]
        links = ((reverse("cluster:server", args=[server.uuid]), name(server.name)) for server in servers)
        return format_html_join(", ", '<a href="{}">{}</a>', links)


class NodeTable(tables.Table):
    index = NumberColumn(verbose_name=_("index"), orderable=False)
    name = tables.Column(linkify=("cluster:member", {"uuid": tables.A("uuid")}))
    status = StateColumn()
    status_reason = StoredMessageColumn(verbose_name=_("reason"))
    profile = tables.Column(
        accessor="profile__name",
        verbose_name=_("profile"),
        linkify=("cluster:profile", {"uuid": tables.A("profile__uuid")}),
    )
    cluster = tables.Column(
        accessor="cluster__name",
        verbose_name=_("cluster"),
        default="",
        linkify=("clusters:detail", {"uuid": tables.A("cluster__uuid")}),
    )
    role = tables.Column(default="", orderable=False)
    tainted = tables.Column(orderable=False)
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"))

    class Meta:
        model = Node
        fields = ("index", "name", "status", "status_reason", "profile", "cluster", "role", "tainted", "created_at")
        attrs = TABLE_ATTRIBUTES

    def render_tainted(self, value: bool) -> str:
        return gettext("tainted") if value else ""


class PolicyTable(tables.Table):
    name = tables.Column(linkify=("cluster:policy", {"uuid": tables.A("uuid")}))
    type = tables.Column()
    cluster_count = NumberColumn(verbose_name=_("clusters"), orderable=False)
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"))

    class Meta:
        model = Policy
        fields = ("name", "type", "cluster_count", "created_at")
        attrs = TABLE_ATTRIBUTES


class ProfileTable(tables.Table):
    name = tables.Column(linkify=("cluster:profile", {"uuid": tables.A("uuid")}))
    flavor = tables.Column(accessor="spec__flavor", verbose_name=_("flavor"), orderable=False)
    node_count = NumberColumn(verbose_name=_("nodes"), orderable=False)
    project_id = tables.Column(verbose_name=_("project"), default="—")
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"))

    class Meta:
        model = Profile
        fields = ("name", "flavor", "node_count", "project_id", "created_at")
        attrs = TABLE_ATTRIBUTES
