"""The clusters of nodes in memory, as strategies see them: read in two queries, however many there are."""

from collections import defaultdict
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import OuterRef, Subquery

from cluster.models import Cluster, Node, Server


@dataclass(frozen=True)
class MemberSnapshot:
    """A node of a cluster, and the state of the server that there is for it, if there is one."""

    uuid: UUID
    name: str
    status: str
    server_state: str | None

    @property
    def is_broken(self) -> bool:
        """Return whether the node is wanted and does not run, by its own status or that of its server."""
        if self.status == Node.Status.DELETING:
            return False
        return self.status not in (Node.Status.ACTIVE, Node.Status.WARNING) or self.server_state != Server.State.ACTIVE


@dataclass
class NodeClusterSnapshot:
    """A cluster and its nodes; ``is_occupied`` says that something is to be done to it or to one of them."""

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


def load_clusters() -> list[NodeClusterSnapshot]:
    """Read the clusters, in the order of their names, with their members in the order of joining."""
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
