"""A cloud, and plans of mixed types and shapes that change it: each object in it is meant for one action."""

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
# Out of so many actions: what they do.
MIXTURE = (
    *["live"] * 6,
    *["cold"] * 3,
    *["stop"] * 3,
    *["resize"] * 3,
    *["volume_migrate"] * 2,
    *["change_nova_service_state"] * 1,
    *["move_servers"] * 1,
    *["nop"] * 4,
)
# How many servers each of them changes.
SERVERS = {"live": 1, "cold": 1, "stop": 1, "resize": 1, "move_servers": 2}
# One out of so many may take no longer than a second: a process that is put to sleep finds its time over.
HASTY_EVERY = 3


class Scenery:
    """The cloud and its plans, always the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311 (chance, no secret)
        self.number = count()
        ComputeNode.objects.bulk_create(ComputeNode(hostname=host, **CAPACITY) for host in HOSTS)
        self.one = ComputeNode.objects.get(hostname="one")
        self.pools = [make_pool(f"{host}@lvm#pool", total_capacity_gb=1_000_000) for host in HOSTS[:2]]
        make_flavor("large", vcpus=2, memory=2048, disk=20)

    def plans(self, actions: int, size: int = 100) -> list[ActionPlan]:
        """Make RECOMMENDED plans that have so many actions together, each of about ``size``."""
        shapes = cycle([independent, chain, layered, scattered])
        return [self.plan(next(shapes), min(size, actions - done)) for done in range(0, actions, size)]

    def plan(self, shape: "Shape", size: int) -> ActionPlan:
        kinds = list(islice(cycle(MIXTURE), size))
        self.chance.shuffle(kinds)
        servers, volumes, nodes, proposed = [], [], [], []
        for kind in kinds:
            of_this = [self.server() for _ in range(SERVERS.get(kind, 0))]
            if kind == "volume_migrate":
                volumes.append(Volume(name=f"volume-{next(self.number)}", pool=self.pools[0], size=1))
            if kind == "change_nova_service_state":
                nodes.append(ComputeNode(hostname=f"node-{next(self.number)}", vcpus=0, memory=0, disk=0))
            timeout = None if self.chance.randrange(HASTY_EVERY) else 1
            proposed.append(replace(self.propose(kind, of_this, volumes, nodes), timeout=timeout))
            servers += of_this
        Server.objects.bulk_create(servers)
        Volume.objects.bulk_create(volumes)
        ComputeNode.objects.bulk_create(nodes)
        parents = shape(proposed, self.chance)
        return propose([replace(one, parents=before) for one, before in zip(proposed, parents, strict=True)])

    def server(self) -> Server:
        return Server(name=f"server-{next(self.number)}", node=self.one, flavor="small", **SIZE)

    def propose(
        self, kind: str, servers: Sequence[Server], volumes: Sequence[Volume], nodes: Sequence[ComputeNode]
    ) -> ProposedAction:
        if kind == "move_servers":
            where = {"destination_node": self.chance.choice(HOSTS[1:])}
            return ProposedAction(kind, {"servers": [str(server.uuid) for server in servers], **where})
        if kind == "volume_migrate":
            where = {"migration_type": "migrate", "destination_node": self.pools[1].name}
            return ProposedAction(kind, {"resource_id": str(volumes[-1].uuid), **where})
        if kind == "change_nova_service_state":
            what = {"resource_id": str(nodes[-1].uuid), "resource_name": nodes[-1].hostname}
            return ProposedAction(kind, {**what, "state": "disabled"})
        if kind == "nop":
            return ProposedAction(kind, {"message": f"{next(self.number)}"})
        return self.change(kind, str(servers[0].uuid))

    def change(self, kind: str, server: str) -> ProposedAction:
        if kind == "stop":
            return ProposedAction(kind, {"resource_id": server})
        if kind == "resize":
            return ProposedAction(kind, {"resource_id": server, "flavor": "large"})
        where = {"source_node": "one", "destination_node": self.chance.choice(HOSTS[1:])}
        return ProposedAction("migrate", {"resource_id": server, "migration_type": kind, **where})


Shape = Callable[[Sequence[ProposedAction], Random], Iterator[Sequence[UUID]]]


def independent(actions: Sequence[ProposedAction], chance: Random) -> Iterator[Sequence[UUID]]:
    for _ in actions:
        yield []


def chain(actions: Sequence[ProposedAction], chance: Random) -> Iterator[Sequence[UUID]]:
    """Each waits for the one before, in chains of twenty-five."""
    for place in range(len(actions)):
        yield [actions[place - 1].uuid] if place % 25 else []


def layered(actions: Sequence[ProposedAction], chance: Random) -> Iterator[Sequence[UUID]]:
    """Layers of ten; each waits for two of the layer before."""
    for place in range(len(actions)):
        above = place // 10 * 10 - 10
        yield [actions[above + place % 10].uuid, actions[above + (place + 1) % 10].uuid] if above >= 0 else []


def scattered(actions: Sequence[ProposedAction], chance: Random) -> Iterator[Sequence[UUID]]:
    """Each waits for up to three that stand before it, wherever."""
    for place in range(len(actions)):
        yield [one.uuid for one in chance.sample(actions[:place], min(place, chance.randrange(4)))]
