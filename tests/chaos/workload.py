"""A cloud, and plans with various action types and dependency graphs. Each object of the cloud has one action."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count, cycle, islice
from random import Random
from uuid import UUID

from cluster.models import ComputeNode, Server, Volume
from plans.models import ActionPlan
from plans.planning.proposals import ProposedAction, propose
from tests.builders import make_flavor, make_pool

CAPACITY = {"vcpus": 1_000_000, "memory": 1_000_000_000, "disk": 1_000_000_000}
SIZE = {"vcpus": 1, "memory": 1024, "disk": 10}
HOSTS = ("one", "two", "three", "four")
# The kinds of actions in their proportions: types of migration, and action types.
KINDS = (
    *["live"] * 6,
    *["cold"] * 3,
    *["stop"] * 3,
    *["resize"] * 3,
    *["volume_migrate"] * 2,
    *["change_nova_service_state"] * 1,
    *["move_servers"] * 1,
    *["nop"] * 4,
)
# The number of servers that an action of each kind changes.
SERVERS = {"live": 1, "cold": 1, "stop": 1, "resize": 1, "move_servers": 2}
# One in this many actions has a timeout of a second, which ends while its process is stopped.
ACTIONS_PER_SHORT_TIMEOUT = 3


class Workload:
    """A cloud and its plans, which depend only on the seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 (no secret)
        self.number = count()
        ComputeNode.objects.bulk_create(ComputeNode(hostname=host, **CAPACITY) for host in HOSTS)
        self.source = ComputeNode.objects.get(hostname="one")
        self.pools = [make_pool(f"{host}@lvm#pool", total_capacity_gb=1_000_000) for host in HOSTS[:2]]
        make_flavor("large", vcpus=2, memory=2048, disk=20)

    def make_plans(self, actions: int, size: int = 100) -> list[ActionPlan]:
        """Make RECOMMENDED plans of at most ``size`` actions, with ``actions`` in total."""
        graphs = cycle([independent, chain, layered, scattered])
        return [self.make_plan(next(graphs), min(size, actions - done)) for done in range(0, actions, size)]

    def make_plan(self, graph: "Graph", size: int) -> ActionPlan:
        kinds = list(islice(cycle(KINDS), size))
        self.random.shuffle(kinds)
        servers, volumes, nodes, proposed = [], [], [], []
        for kind in kinds:
            own_servers = [self.build_server() for _ in range(SERVERS.get(kind, 0))]
            if kind == "volume_migrate":
                volumes.append(Volume(name=f"volume-{next(self.number)}", pool=self.pools[0], size=1))
            if kind == "change_nova_service_state":
                nodes.append(ComputeNode(hostname=f"node-{next(self.number)}", vcpus=0, memory=0, disk=0))
            timeout = None if self.random.randrange(ACTIONS_PER_SHORT_TIMEOUT) else 1
            proposed.append(replace(self.propose(kind, own_servers, volumes, nodes), timeout=timeout))
            servers += own_servers
        Server.objects.bulk_create(servers)
        Volume.objects.bulk_create(volumes)
        ComputeNode.objects.bulk_create(nodes)
        parents = graph(proposed, self.random)
        return propose([replace(action, parents=before) for action, before in zip(proposed, parents, strict=True)])

    def build_server(self) -> Server:
        return Server(name=f"server-{next(self.number)}", node=self.source, flavor="small", **SIZE)

    def propose(
        self, kind: str, servers: Sequence[Server], volumes: Sequence[Volume], nodes: Sequence[ComputeNode]
    ) -> ProposedAction:
        """Propose an action on the servers, on the last volume or on the last node."""
        if kind == "move_servers":
            destination = {"destination_node": self.random.choice(HOSTS[1:])}
            return ProposedAction(kind, {"servers": [str(server.uuid) for server in servers], **destination})
        if kind == "volume_migrate":
            destination = {"migration_type": "migrate", "destination_node": self.pools[1].name}
            return ProposedAction(kind, {"resource_id": str(volumes[-1].uuid), **destination})
        if kind == "change_nova_service_state":
            service = {"resource_id": str(nodes[-1].uuid), "resource_name": nodes[-1].hostname}
            return ProposedAction(kind, {**service, "state": "disabled"})
        if kind == "nop":
            return ProposedAction(kind, {"message": f"{next(self.number)}"})
        return self.propose_server_change(kind, str(servers[0].uuid))

    def propose_server_change(self, kind: str, server: str) -> ProposedAction:
        if kind == "stop":
            return ProposedAction(kind, {"resource_id": server})
        if kind == "resize":
            return ProposedAction(kind, {"resource_id": server, "flavor": "large"})
        hosts = {"source_node": "one", "destination_node": self.random.choice(HOSTS[1:])}
        return ProposedAction("migrate", {"resource_id": server, "migration_type": kind, **hosts})


Graph = Callable[[Sequence[ProposedAction], Random], Iterator[Sequence[UUID]]]
"""Yields the parents of each action."""


def independent(actions: Sequence[ProposedAction], random: Random) -> Iterator[Sequence[UUID]]:
    for _ in actions:
        yield []


def chain(actions: Sequence[ProposedAction], random: Random) -> Iterator[Sequence[UUID]]:
    """Make chains of 25 actions."""
    for index in range(len(actions)):
        yield [actions[index - 1].uuid] if index % 25 else []


def layered(actions: Sequence[ProposedAction], random: Random) -> Iterator[Sequence[UUID]]:
    """Make layers of ten actions, each with two parents in the previous layer."""
    for index in range(len(actions)):
        layer = index // 10 * 10 - 10
        yield [actions[layer + index % 10].uuid, actions[layer + (index + 1) % 10].uuid] if layer >= 0 else []


def scattered(actions: Sequence[ProposedAction], random: Random) -> Iterator[Sequence[UUID]]:
    """Give each action up to three parents among all previous actions."""
    for index in range(len(actions)):
        yield [parent.uuid for parent in random.sample(actions[:index], min(index, random.randrange(4)))]
