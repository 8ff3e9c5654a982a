"""The load balancing policy: the servers of a cluster's nodes are in the pool of a load balancer while they serve."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from django.db.models import Q

from cluster.drivers.balancing import Balancer, BalancingPoolNotFound, balancer
from cluster.drivers.base import Checkpoint, CloudBusy, CloudError, ServerNotFound, proceed
from cluster.models import Cluster, Node
from cluster.models.balancing import MAX_PORT
from cluster.policies.base import PolicyCheck, PolicyRefused, PolicyType, When, find_named, seconds, section

POOLED = "load_balancing"
"""The key in a node's data of the server that is in the pool for it, or was to be put in."""


LATEST = datetime.max.replace(tzinfo=UTC)


class LoadBalancing(PolicyType):
    """Nodes that go leave the pool first, and may end their connections; those that are ACTIVE are put in afterwards.

    Which server is in the pool for a node is written down before it is put in: it is found again when the node has got
    another one.
    """

    name = "senlin.policy.loadbalance-1.3"
    description = "That the servers of a cluster's nodes are in the pool of a load balancer."
    priority = 500
    targets = {
        When.BEFORE: frozenset(
            {"CLUSTER_SCALE_IN", "CLUSTER_DEL_NODES", "CLUSTER_RESIZE", "NODE_DELETE", "NODE_LEAVE"}
        ),
        When.AFTER: frozenset(
            {"CLUSTER_SCALE_OUT", "CLUSTER_ADD_NODES", "CLUSTER_RESIZE", "CLUSTER_RECOVER", "CLUSTER_UPDATE"}
            | {"CLUSTER_CHECK", "NODE_CREATE", "NODE_JOIN", "NODE_RECOVER", "NODE_UPDATE"}
        ),
    }
    schema = {
        "type": "object",
        "properties": {
            "pool": section(
                "where the servers are put",
                id={"type": "string", "minLength": 1, "maxLength": 255, "description": "the pool's UUID or its name"},
                protocol_port={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_PORT,
                    "default": 80,
                    "description": "where the servers take connections",
                },
                subnet={
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 255,
                    "description": "the one on which the pool reaches the servers; left out: the load balancer's own",
                },
            )
            | {"required": ["id"]},
            "draining_timeout": seconds("how long a server that leaves may have connections", 60),
        },
        "required": ["pool"],
        "additionalProperties": False,
    }
    decides = False

    def pre_op(self, check: PolicyCheck) -> None:
        members = check.cluster.members()
        if check.node and members.count() <= check.cluster.min_size:
            return  # The cluster cannot do without: whatever it is, it will be refused.
        leaving = members.filter(uuid__in=set(find_named(check)) - set(check.left_out))
        self.take_out(leaving, check.checkpoint)

    def post_op(self, check: PolicyCheck) -> None:
        members = check.cluster.members()
        self.put_in(members.filter(pk=check.node.pk) if check.node else members, check.checkpoint)

    def attach(self, cluster: Cluster) -> None:
        self.put_in(cluster.members())

    def detach(self, cluster: Cluster) -> None:
        """Take out all, and those whose nodes were deleted before."""
        self.take_out(cluster.nodes.filter(Q(deleted_at=None) | Q(data__has_key=POOLED)))

    def give_up_attaching(self, cluster: Cluster) -> None:
        """Take out at once those that were put in, and leave those that were in it before."""
        self.take_out(cluster.nodes.filter(data__has_key=POOLED), seconds_to_end=0)

    def put_in(self, nodes: Iterable[Node], checkpoint: Checkpoint = proceed) -> None:
        """Add the servers of the ACTIVE nodes to the pool, and remove servers that the nodes had before."""
        pool, load = self.spec["pool"], balancer()
        with translating_refusals():
            serving = {member.server for member in load.members(pool["id"]) if member.weight}
            present = list(nodes)
            for node in present:
                if (former := pooled(node)) and former != read_node_server(node):
                    load.remove_member(pool["id"], former, checkpoint=checkpoint)
            entering = [node for node in present if is_serving(node) and read_node_server(node) not in serving]
            note(entering, {node.pk: {"server": read_node_server(node)} for node in entering})
            gone = [node for node in entering if not self.add(load, node, checkpoint)]
        note(gone, {})

    def add(self, load: Balancer, node: Node, checkpoint: Checkpoint) -> bool:
        """Add the server of a node to the pool, and return False if the server is gone."""
        pool = self.spec["pool"]
        where = (pool["id"], str(node.physical_id), pool["protocol_port"])
        try:
            load.add_member(*where, subnet=pool.get("subnet"), checkpoint=checkpoint)
        except ServerNotFound:
            return False
        return True

    def take_out(
        self, nodes: Iterable[Node], checkpoint: Checkpoint = proceed, seconds_to_end: int | None = None
    ) -> None:
        """Remove the servers of nodes from the pool, including servers that they had before.

        All removals are begun before any is awaited.

        Args:
            seconds_to_end: how long connections may last, if not as long as the policy says.

        Raises:
            CloudBusy: servers still have connections, and time to end them.
        """
        leaving, waiting = list(nodes), []
        with translating_refusals():
            load = balancer()
            for node in leaving:
                grace = self.time_for(node) if seconds_to_end is None else seconds_to_end
                for server in {read_node_server(node), pooled(node)} - {None}:
                    try:
                        load.remove_member(self.spec["pool"]["id"], str(server), grace, checkpoint)
                    except BalancingPoolNotFound:
                        break
                    except CloudBusy as busy:
                        waiting.append(busy)
            if waiting:
                raise max(waiting, key=lambda busy: busy.until or LATEST)
        note(leaving, {})

    def time_for(self, node: Node) -> int:
        """Return how long the connections of a node may last: those of one that is deleted do not."""
        return 0 if node.deleted_at else int(self.spec["draining_timeout"])


@contextmanager
def translating_refusals() -> Iterator[None]:
    """Refuse what the load balancer refuses, and let through that it is tried again later."""
    try:
        yield
    except CloudBusy:
        raise
    except CloudError as problem:
        raise PolicyRefused(str(problem)) from problem


def is_serving(node: Node) -> bool:
    return node.status == Node.Status.ACTIVE and node.physical_id is not None


def read_node_server(node: Node) -> str | None:
    return str(node.physical_id) if node.physical_id else None


def pooled(node: Node) -> str | None:
    server: str | None = node.data.get(POOLED, {}).get("server")
    return server


def note(nodes: list[Node], servers: Mapping[int, Mapping[str, str | None]]) -> None:
    """Write down with these nodes which server is in the pool for each, or, where none is named, that none is."""
    changed = [node for node in nodes if node.data.get(POOLED) != servers.get(node.pk)]
    for node in changed:
        node.data.pop(POOLED, None)
        node.data |= {POOLED: dict(servers[node.pk])} if node.pk in servers else {}
    Node.objects.bulk_update(changed, ["data"], batch_size=1000)
