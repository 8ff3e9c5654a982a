"""The cloud in memory, as strategies see it: loaded in a fixed number of queries, then read without any."""

from dataclasses import dataclass, field, fields
from typing import Any, Self
from uuid import UUID

from cluster.models import ComputeNode, Server


@dataclass
class ServerSnapshot:
    """A server: memory in MB, disk in GB. ``watcher_exclude`` says that the audit's scope leaves it alone."""

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

    @property
    def is_active(self) -> bool:
        return self.state == Server.State.ACTIVE

    @classmethod
    def of(cls, server: Server) -> Self:
        return cls(
            **{column.name: getattr(server, column.name) for column in fields(cls) if hasattr(server, column.name)}
        )


@dataclass
class NodeSnapshot:
    """A compute node: memory in MB, disk in GB; a capacity is (total - reserved) * ratio.

    ``servers`` are on it, ``arriving`` ones are being migrated to it; both take room.
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
    servers: list[ServerSnapshot] = field(default_factory=list)
    arriving: list[ServerSnapshot] = field(default_factory=list)

    @property
    def is_enabled(self) -> bool:
        return self.status == ComputeNode.Status.ENABLED

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

    @classmethod
    def of(cls, node: ComputeNode) -> Self:
        columns = [column.name for column in fields(cls) if hasattr(node, column.name)]
        return cls(**{name: getattr(node, name) for name in columns if name not in {"servers", "arriving"}})


@dataclass
class ClusterSnapshot:
    """The compute nodes by host name, in the order of their names, each with its servers in the order of theirs."""

    nodes: dict[str, NodeSnapshot] = field(default_factory=dict)

    @property
    def servers(self) -> list[ServerSnapshot]:
        return [server for node in self.nodes.values() for server in node.servers]

    @classmethod
    def load(cls) -> Self:
        """Read the tables: two queries, however many rows. Servers without a node do not appear."""
        rows = {node.pk: NodeSnapshot.of(node) for node in ComputeNode.objects.present().order_by("hostname")}
        for row in Server.objects.present().exclude(node=None).order_by("name", "pk"):
            server = ServerSnapshot.of(row)
            if row.node_id in rows:
                rows[row.node_id].servers.append(server)
            if row.destination_id in rows:
                rows[row.destination_id].arriving.append(server)
        return cls({node.hostname: node for node in rows.values()})
