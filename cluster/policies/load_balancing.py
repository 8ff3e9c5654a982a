"""The load balancing policy: the servers of ACTIVE nodes are members of a load balancer's pool."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from django.db.models import Q

from cluster.drivers.balancing import Balancer, BalancingPoolNotFound, balancer
from cluster.drivers.base import Checkpoint, CloudBusy, CloudError, ServerNotFound, proceed
from cluster.models import Cluster, Node
from cluster.models.balancing import MAX_PORT
from cluster.policies.base import PolicyCheck, PolicyRefused, PolicyType, When, find_candidates, seconds, section

POOLED = "load_balancing"
"""The key in a node's data of the server that was, or is being, added to the pool."""


LATEST = datetime.max.replace(tzinfo=UTC)


class LoadBalancing(PolicyType):
    """Removes leaving nodes from the pool, after a time for their connections, and adds ACTIVE nodes afterwards.

    The server of a node is stored before it is added, so that it can be removed after the node got another server.
    """

    name = "senlin.policy.loadbalance-1.3"
    description = "Keeps the servers of a cluster in the pool of a load balancer."
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
                "the pool of the servers",
                id={
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 255,
                    "description": "the UUID or the name of the pool",
                },
                protocol_port={
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_PORT,
                    "default": 80,
                    "description": "the port of the servers that receives connections",
                },
                subnet={
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 255,
                    "description": "the subnet of the servers' addresses (default: the subnet of the load balancer)",
                },
            )
            | {"required": ["id"]},
            "draining_timeout": seconds("the time that connections to a removed server have to end", 60),
        },
        "required": ["pool"],
        "additionalProperties": False,
    }
    decides = False

    def pre_op(self, check: PolicyCheck) -> None:
        members = check.cluster.members()
        if check.node and members.count() <= check.cluster.min_size:
            return  # The action will be refused, because the cluster would be too small.
        leaving = members.filter(uuid__in=set(find_candidates(check)) - set(check.left_out))
        self.remove_servers(leaving, check.checkpoint)

    def post_op(self, check: PolicyCheck) -> None:
        members = check.cluster.members()
        self.add_servers(members.filter(pk=check.node.pk) if check.node else members, check.checkpoint)

    def attach(self, cluster: Cluster) -> None:
        self.add_servers(cluster.members())

    def detach(self, cluster: Cluster) -> None:
        """Remove the servers of all nodes, including deleted nodes."""
        self.remove_servers(cluster.nodes.filter(Q(deleted_at=None) | Q(data__has_key=POOLED)))

    def give_up_attaching(self, cluster: Cluster) -> None:
        """Remove the servers that were added, at once. Servers that were in the pool before stay."""
        self.remove_servers(cluster.nodes.filter(data__has_key=POOLED), seconds_to_end=0)

    def add_servers(self, nodes: Iterable[Node], checkpoint: Checkpoint = proceed) -> None:
        """Add the servers of ACTIVE nodes to the pool, and remove the former servers of nodes."""
        pool, load = self.spec["pool"], balancer()
        with translating_refusals():
            serving = {member.server for member in load.members(pool["id"]) if member.weight}
            present = list(nodes)
            for node in present:
                if (former := read_pooled_server(node)) and former != read_node_server(node):
                    load.remove_member(pool["id"], former, checkpoint=checkpoint)
            entering = [node for node in present if is_serving(node) and read_node_server(node) not in serving]
            store_pooled_servers(entering, {node.pk: {"server": read_node_server(node)} for node in entering})
            gone = [node for node in entering if not self.add_server(load, node, checkpoint)]
        store_pooled_servers(gone, {})

    def add_server(self, load: Balancer, node: Node, checkpoint: Checkpoint) -> bool:
        """Add the server of a node to the pool, and return False if the server does not exist."""
        pool = self.spec["pool"]
        where = (pool["id"], str(node.physical_id), pool["protocol_port"])
        try:
            load.add_member(*where, subnet=pool.get("subnet"), checkpoint=checkpoint)
        except ServerNotFound:
            return False
        return True

    def remove_servers(
        self, nodes: Iterable[Node], checkpoint: Checkpoint = proceed, seconds_to_end: int | None = None
    ) -> None:
        """Remove the current and former servers of nodes from the pool.

        All removals are requested before the first wait.

        Args:
            seconds_to_end: the grace period of connections, by default that of the policy.

        Raises:
            CloudBusy: grace periods are not over.
        """
        leaving, waiting = list(nodes), []
        with translating_refusals():
            load = balancer()
            for node in leaving:
                grace = self.grace_period_of(node) if seconds_to_end is None else seconds_to_end
                for server in {read_node_server(node), read_pooled_server(node)} - {None}:
                    try:
                        load.remove_member(self.spec["pool"]["id"], str(server), grace, checkpoint)
                    except BalancingPoolNotFound:
                        break
                    except CloudBusy as busy:
                        waiting.append(busy)
            if waiting:
                raise max(waiting, key=lambda busy: busy.until or LATEST)
        store_pooled_servers(leaving, {})

    def grace_period_of(self, node: Node) -> int:
        """Return the grace period of a node's connections in seconds, 0 for a deleted node."""
        return 0 if node.deleted_at else int(self.spec["draining_timeout"])


@contextmanager
def translating_refusals() -> Iterator[None]:
    """Convert errors of the load balancer to `PolicyRefused`, except for `CloudBusy`, which causes a retry."""
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


def read_pooled_server(node: Node) -> str | None:
    server: str | None = node.data.get(POOLED, {}).get("server")
    return server


def store_pooled_servers(nodes: list[Node], servers: Mapping[int, Mapping[str, str | None]]) -> None:
    """Store the servers of nodes that are in the pool, by the key of the node; other nodes have none."""
    changed = [node for node in nodes if node.data.get(POOLED) != servers.get(node.pk)]
    for node in changed:
        node.data.pop(POOLED, None)
        node.data |= {POOLED: dict(servers[node.pk])} if node.pk in servers else {}
    Node.objects.bulk_update(changed, ["data"], batch_size=1000)
