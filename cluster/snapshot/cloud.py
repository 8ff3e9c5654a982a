"""The snapshot of the cloud for strategies, loaded in a fixed number of queries."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from uuid import UUID

from django.db.models import F, OuterRef, Subquery

from cluster.models import Cluster, ComputeNode, HostAggregate, Node, Server
from cluster.models.compute import DEFAULT_ZONE
from cluster.snapshot.health import HealthSnapshot
from cluster.snapshot.storage import StorageSnapshot, columns, load_storage_snapshot

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class ServerSnapshot:
    """A server: memory in MB, disk in GB. ``watcher_exclude`` is true if the audit's scope excludes it.

    ``waiting_since`` is the beginning of a PENDING server's wait for capacity, or None if it is not recorded yet.
    """

    uuid: UUID
    name: str
    state: str
    vcpus: int
    memory: int
    disk: int
    metadata: dict[str, Any]
    project_id: str
    locked: bool
    pinned_az: str
    flavor_extra_specs: dict[str, Any]
    watcher_exclude: bool = False
    flavor: str = ""
    created_at: datetime = EPOCH
    waiting_since: datetime | None = None

    @property
    def is_active(self) -> bool:
        return self.state == Server.State.ACTIVE


@dataclass(frozen=True)
class AggregateSnapshot:
    """A host aggregate of a compute node."""

    id: int
    name: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    uuid: UUID | None = None


@dataclass
class NodeSnapshot:
    """A compute node: memory in MB, disk in GB; a capacity is (total - reserved) * ratio.

    ``servers`` are on the node, and ``arriving`` servers are being migrated to it. Both count as used.
    """

    uuid: UUID
    hostname: str
    status: str
    disabled_reason: str | None
    state: str
    vcpus: int
    vcpu_reserved: int
    vcpu_ratio: float
    memory: int
    memory_mb_reserved: int
    memory_ratio: float
    disk: int
    disk_gb_reserved: int
    disk_ratio: float
    capacity_vcpus: float
    capacity_memory: float
    capacity_disk: float
    allocation_units: Mapping[str, Mapping[str, int]] | None = None
    zone: str = DEFAULT_ZONE
    power_state: str = ComputeNode.PowerState.ON
    forced_down: bool = False
    aggregates: list[AggregateSnapshot] = field(default_factory=list)
    servers: list[ServerSnapshot] = field(default_factory=list)
    arriving: list[ServerSnapshot] = field(default_factory=list)

    @property
    def is_enabled(self) -> bool:
        return self.status == ComputeNode.Status.ENABLED

    @property
    def is_up(self) -> bool:
        return self.state == ComputeNode.State.UP

    @property
    def is_known_to_be_off(self) -> bool:
        """Return whether the machine is switched off, or its compute service was forced down."""
        return not self.is_up and (self.power_state == ComputeNode.PowerState.OFF or self.forced_down)

    @property
    def used_vcpus(self) -> int:
        return sum(server.vcpus for server in [*self.servers, *self.arriving])

    @property
    def used_memory(self) -> int:
        return sum(server.memory for server in [*self.servers, *self.arriving])

    @property
    def used_disk(self) -> int:
        return sum(server.disk for server in [*self.servers, *self.arriving])

    @property
    def free_vcpus(self) -> float:
        return self.capacity_vcpus - self.used_vcpus

    @property
    def free_memory(self) -> float:
        return self.capacity_memory - self.used_memory

    @property
    def free_disk(self) -> float:
        return self.capacity_disk - self.used_disk


@dataclass(frozen=True)
class MemberSnapshot:
    """A node of a cluster, with the state of its server, or None without a server."""

    uuid: UUID
    name: str
    status: str
    server_state: str | None

    @property
    def is_broken(self) -> bool:
        """Return whether the node does not run, by its own status or that of its server, and is not being deleted."""
        if self.status == Node.Status.DELETING:
            return False
        return self.status not in (Node.Status.ACTIVE, Node.Status.WARNING) or self.server_state != Server.State.ACTIVE


@dataclass
class NodeClusterSnapshot:
    """A cluster and its nodes; ``is_occupied`` is true if an unfinished action concerns it or one of its nodes."""

    uuid: UUID
    name: str
    status: str
    desired_capacity: int
    members: list[MemberSnapshot] = field(default_factory=list)
    is_occupied: bool = False

    @property
    def broken(self) -> list[MemberSnapshot]:
        return [member for member in self.members if member.is_broken]

    @property
    def missing(self) -> int:
        """Return the number of nodes by which the cluster is below its desired capacity."""
        return max(self.desired_capacity - len(self.members), 0)


@dataclass
class ClusterSnapshot:
    """The compute nodes by host name, with their servers, both ordered by name.

    ``storage`` contains the storage nodes. ``clusters`` are the clusters of nodes, if the strategy requires them.
    ``waiting`` are the PENDING servers, the oldest first. ``measurements`` are the values that the strategy requires
    from a data source: one number for each resource, by the name of the reading.
    """

    nodes: dict[str, NodeSnapshot] = field(default_factory=dict)
    storage: StorageSnapshot = field(default_factory=StorageSnapshot)
    measurements: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    clusters: Sequence[NodeClusterSnapshot] = ()
    health: HealthSnapshot = field(default_factory=HealthSnapshot)
    waiting: list[ServerSnapshot] = field(default_factory=list)

    def of_server(self, name: str, server: ServerSnapshot) -> float | None:
        """Return the value of a reading for a server, or None."""
        return self.measurements.get(name, {}).get(str(server.uuid))

    def of_node(self, name: str, node: NodeSnapshot) -> float | None:
        """Return the value of a reading for a compute node, or None. Data sources use its UUID or its host name."""
        values = self.measurements.get(name, {})
        return values.get(str(node.uuid), values.get(node.hostname))

    @property
    def servers(self) -> list[ServerSnapshot]:
        return [server for node in self.nodes.values() for server in node.servers]

    @classmethod
    def load(cls) -> Self:
        """Load the tables in ten queries. Servers without a node are omitted, except for PENDING ones."""
        return cls(load_nodes(), load_storage_snapshot(), waiting=load_waiting())


CAPACITIES = ("capacity_vcpus", "capacity_memory", "capacity_disk")
NODE_COLUMNS = columns(NodeSnapshot, *CAPACITIES, "aggregates", "servers", "arriving")
SERVER_COLUMNS = columns(ServerSnapshot, "watcher_exclude", "waiting_since")


def load_waiting() -> list[ServerSnapshot]:
    rows = Server.objects.waiting().order_by("created_at", "pk")
    return [ServerSnapshot(**row) for row in rows.values(*SERVER_COLUMNS, waiting_since=F("wait__since"))]


def load_nodes() -> dict[str, NodeSnapshot]:
    """Load compute nodes, servers and aggregates in three queries."""
    rows = ComputeNode.objects.present().order_by("hostname").values("pk", *NODE_COLUMNS)
    nodes = {row.pop("pk"): NodeSnapshot(**row, **capacities(row)) for row in rows}
    fill_nodes(nodes)
    memberships = HostAggregate.objects.present().order_by("name", "nodes")
    for node, *aggregate in memberships.values_list("nodes", "id", "name", "metadata", "uuid"):
        if node in nodes:
            nodes[node].aggregates.append(AggregateSnapshot(*aggregate))
    return {node.hostname: node for node in nodes.values()}


def load_clusters() -> list[NodeClusterSnapshot]:
    """Load the clusters by name, with their members in the order in which they joined."""
    members = defaultdict(list)
    servers = Server.objects.present().filter(uuid=OuterRef("physical_id")).order_by()
    nodes = Node.objects.present().exclude(cluster=None).order_by("cluster", "index", "pk")
    nodes = nodes.annotate(server_state=Subquery(servers.values("state")[:1]))
    for cluster, *member in nodes.values_list("cluster", "uuid", "name", "status", "server_state"):
        members[cluster].append(MemberSnapshot(*member))
    rows = Cluster.objects.present().order_by("name", "pk")
    columns = rows.values_list("pk", "uuid", "name", "status", "desired_capacity")
    return [
        NodeClusterSnapshot(uuid, name, status, desired_capacity, members[key])
        for key, uuid, name, status, desired_capacity in columns
    ]


def capacities(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the capacities of a compute node, computed from its columns."""
    node = ComputeNode(**row)
    return {name: getattr(node, name) for name in CAPACITIES}


def fill_nodes(nodes: Mapping[int, NodeSnapshot]) -> None:
    """Add the servers to their nodes and to the destinations of their migrations."""
    rows = Server.objects.present().exclude(node=None).order_by("name", "pk")
    for row in rows.values("node_id", "destination_id", *SERVER_COLUMNS):
        node, destination = nodes.get(row.pop("node_id")), nodes.get(row.pop("destination_id"))
        server = ServerSnapshot(**row)
        if node:
            node.servers.append(server)
        if destination:
            destination.arriving.append(server)
