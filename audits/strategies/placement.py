"""The placement of servers after the moves that a strategy considers.

Totals of the used capacity are updated incrementally by each move.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

from cluster.drivers.messages import UNITS
from cluster.drivers.scheduler import find_broken_unit_rule
from cluster.models import ComputeNode, Server
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot

# The kind of migration by the state of a server.
MIGRATIONS = {Server.State.ACTIVE: "live", Server.State.PAUSED: "live", Server.State.STOPPED: "cold"}
Amounts = tuple[float, ...]


def migration_of(server: ServerSnapshot) -> str | None:
    """Return the kind of migration of a server, live or cold, or None if it cannot be migrated."""
    return MIGRATIONS.get(Server.State(server.state))


class Place:
    """A compute node with its servers, and its free vcpus, MB and GB."""

    def __init__(self, node: NodeSnapshot) -> None:
        self.node = node
        self.servers: dict[UUID, ServerSnapshot] = {server.uuid: server for server in node.servers}
        self.free_vcpus = node.capacity_vcpus
        self.free_memory = node.capacity_memory
        self.free_disk = node.capacity_disk
        for server in [*node.servers, *node.arriving]:
            self.take(server)

    @property
    def hostname(self) -> str:
        return self.node.hostname

    @property
    def is_empty(self) -> bool:
        """Return whether no server is on the node or moving to it."""
        return not self.servers and not self.node.arriving

    @property
    def free(self) -> Amounts:
        return self.free_vcpus, self.free_memory, self.free_disk

    def take(self, server: ServerSnapshot, sign: int = 1) -> None:
        self.free_vcpus -= sign * server.vcpus
        self.free_memory -= sign * server.memory
        self.free_disk -= sign * server.disk

    def fits(self, server: ServerSnapshot) -> bool:
        return (
            server.vcpus <= self.free_vcpus
            and server.memory <= self.free_memory
            and server.disk <= self.free_disk
            and self.admits(server)
        )

    def admits(self, server: ServerSnapshot) -> bool:
        """Return whether the availability zone and the allocation rules of the node allow the server."""
        return server.pinned_az in {"", self.node.zone} and accepts(self.node, server)


class Placement:
    """The nodes that are up, by host name. Servers that are excluded or already migrating cannot be moved."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self.places = {node.hostname: Place(node) for node in cluster.nodes.values() if node.is_up and is_on(node)}
        self.arriving = {server.uuid for node in cluster.nodes.values() for server in node.arriving}

    def can_move(self, server: ServerSnapshot) -> bool:
        return not server.watcher_exclude and server.uuid not in self.arriving and migration_of(server) is not None

    def movable(self, place: Place, *, only_active: bool = False) -> list[ServerSnapshot]:
        return [
            server
            for server in place.servers.values()
            if self.can_move(server) and (server.is_active or not only_active)
        ]

    def move(self, server: ServerSnapshot, source: Place, destination: Place) -> None:
        """Move a server, even if it does not fit."""
        del source.servers[server.uuid]
        source.take(server, -1)
        destination.servers[server.uuid] = server
        destination.take(server)


def accepts(node: NodeSnapshot, server: ServerSnapshot) -> bool:
    """Return whether a node accepts a server of this size, apart from its free capacity."""
    if not node.allocation_units:
        return True
    return not find_broken_unit_rule(node.allocation_units, {name: getattr(server, name) for name in UNITS})


def is_on(node: NodeSnapshot) -> bool:
    return node.power_state == ComputeNode.PowerState.ON


class FirstFit:
    """A search tree for the first place with enough capacity, in time logarithmic in the number of places.

    Each vertex has the maximum of each amount below it, so that branches without enough capacity are skipped. A place
    with less than ``least`` of an amount cannot receive any server. Its amounts are stored as insufficient, so that
    the search does not enter its branch because of its other amounts.
    """

    def __init__(
        self, places: Sequence[Place], capacity: Callable[[Place], Amounts], least: Amounts | None = None
    ) -> None:
        self.places, self.capacity, self.least = places, capacity, least
        self.positions = {place.hostname: position for position, place in enumerate(places)}
        self.leaves = 1 << max(len(places) - 1, 0).bit_length()
        amounts = [self.capacity_of(place) for place in places]
        empty = tuple(-1.0 for _ in amounts[0]) if amounts else ()
        self.tree: list[Amounts] = [empty] * self.leaves + amounts + [empty] * (self.leaves - len(amounts))
        for vertex in range(self.leaves - 1, 0, -1):
            self.tree[vertex] = most(self.tree[2 * vertex], self.tree[2 * vertex + 1])

    def capacity_of(self, place: Place) -> Amounts:
        amounts = self.capacity(place)
        return (-1.0,) * len(amounts) if self.least and is_insufficient(amounts, self.least) else amounts

    def refresh(self, *places: Place) -> None:
        """Update the free capacity of these places."""
        for place in places:
            if place.hostname not in self.positions:
                continue
            vertex = self.leaves + self.positions[place.hostname]
            self.tree[vertex] = self.capacity_of(place)
            while vertex > 1:
                vertex //= 2
                self.tree[vertex] = most(self.tree[2 * vertex], self.tree[2 * vertex + 1])

    def find(self, required: Amounts, admits: Callable[[Place], bool], before: int | None = None) -> Place | None:
        """Return the first admitted place with enough capacity, before a position if one is given, or None."""
        return next(filter(admits, self.positions_with_capacity(required, before)), None)

    def positions_with_capacity(self, required: Amounts, before: int | None = None) -> Iterator[Place]:
        end = len(self.places) if before is None else before
        vertices = [1] if self.places else []
        while vertices:
            vertex = vertices.pop()
            if is_insufficient(self.tree[vertex], required):
                continue
            if vertex < self.leaves:
                vertices += [2 * vertex + 1, 2 * vertex]
            elif vertex - self.leaves < end:
                yield self.places[vertex - self.leaves]
            else:
                return


def is_insufficient(amounts: Amounts, required_amounts: Amounts) -> bool:
    # A generator would take several times as long, and searches spend most of their time here.
    for amount, required in zip(amounts, required_amounts, strict=True):  # noqa: SIM110
        if amount < required:
            return True
    return False


def smallest(servers: Iterable[ServerSnapshot]) -> Amounts | None:
    """Return the minimum vcpus, MB and GB of the servers, or None without servers."""
    sizes = [(server.vcpus, server.memory, server.disk) for server in servers]
    return tuple(map(min, zip(*sizes, strict=True))) if sizes else None


def most(left: Amounts, right: Amounts) -> Amounts:
    return tuple(map(max, left, right))


def enabled(places: Iterable[Place]) -> list[Place]:
    return [place for place in places if place.node.is_enabled]
