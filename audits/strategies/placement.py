"""The placement of servers after the moves that a strategy considers, with running totals of the used capacity.

Strategies move servers here and read the totals again, without computing any sum again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from uuid import UUID

from cluster.drivers.scheduler import UNITS, find_broken_unit_rule
from cluster.models import ComputeNode, Server
from cluster.snapshot import ClusterSnapshot, NodeSnapshot, ServerSnapshot

# How a server of a state can leave its node.
MIGRATIONS = {Server.State.ACTIVE: "live", Server.State.PAUSED: "live", Server.State.STOPPED: "cold"}
Amounts = tuple[float, ...]


def migration_of(server: ServerSnapshot) -> str | None:
    """Return how a server can be migrated: live, cold, or not at all."""
    return MIGRATIONS.get(Server.State(server.state))


class Place:
    """One compute node: the servers on it, and the vcpus, MB and GB that are free."""

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
    """The nodes that are up, by host name. Servers that are excluded or on their way already do not move."""

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
        """Move a server, whether it fits or not."""
        del source.servers[server.uuid]
        source.take(server, -1)
        destination.servers[server.uuid] = server
        destination.take(server)


def accepts(node: NodeSnapshot, server: ServerSnapshot) -> bool:
    """Return whether a node accepts a server of this size, free capacity aside."""
    if not node.allocation_units:
        return True
    return not find_broken_unit_rule(node.allocation_units, {name: getattr(server, name) for name in UNITS})


def is_on(node: NodeSnapshot) -> bool:
    return node.power_state == ComputeNode.PowerState.ON


class FirstFit:
    """Finds the first of many places with enough capacity, in time that grows with the logarithm of their number.

    It is a tree: each vertex holds the maximum of each amount below it, so that whole branches without enough capacity
    are skipped. A place with less than ``least`` of an amount can take no server at all: it counts as having none of
    any amount, so that its other amounts do not lead the search into its branch.
    """

    def __init__(
        self, places: Sequence[Place], capacity: Callable[[Place], Amounts], least: Amounts | None = None
    ) -> None:
        self.places, self.capacity, self.least = places, capacity, least
        self.positions = {place.hostname: position for position, place in enumerate(places)}
        self.leaves = 1 << max(len(places) - 1, 0).bit_length()
        amounts = [self.capacity_of(place) for place in places]
        nothing = tuple(-1.0 for _ in amounts[0]) if amounts else ()
        self.tree: list[Amounts] = [nothing] * self.leaves + amounts + [nothing] * (self.leaves - len(amounts))
        for knot in range(self.leaves - 1, 0, -1):
            self.tree[knot] = most(self.tree[2 * knot], self.tree[2 * knot + 1])

    def capacity_of(self, place: Place) -> Amounts:
        amounts = self.capacity(place)
        return (-1.0,) * len(amounts) if self.least and is_insufficient(amounts, self.least) else amounts

    def refresh(self, *places: Place) -> None:
        """Update the free capacity of these places."""
        for place in places:
            if place.hostname not in self.positions:
                continue
            knot = self.leaves + self.positions[place.hostname]
            self.tree[knot] = self.capacity_of(place)
            while knot > 1:
                knot //= 2
                self.tree[knot] = most(self.tree[2 * knot], self.tree[2 * knot + 1])

    def find(self, wanted: Amounts, admits: Callable[[Place], bool], before: int | None = None) -> Place | None:
        """Return the first place that has all that is wanted and is admitted, among those before a position."""
        return next(filter(admits, self.positions_with_capacity(wanted, before)), None)

    def positions_with_capacity(self, wanted: Amounts, before: int | None = None) -> Iterator[Place]:
        end = len(self.places) if before is None else before
        knots = [1] if self.places else []
        while knots:
            knot = knots.pop()
            if is_insufficient(self.tree[knot], wanted):
                continue
            if knot < self.leaves:
                knots += [2 * knot + 1, 2 * knot]
            elif knot - self.leaves < end:
                yield self.places[knot - self.leaves]
            else:
                return


def is_insufficient(amounts: Amounts, wanted: Amounts) -> bool:
    # A loop, as a generator takes several times as long, and this is where searches spend their time.
    for there, least in zip(amounts, wanted, strict=True):  # noqa: SIM110
        if there < least:
            return True
    return False


def smallest(servers: Iterable[ServerSnapshot]) -> Amounts | None:
    """Return the least vcpus, MB and GB that any server takes, or nothing where there is none."""
    sizes = [(server.vcpus, server.memory, server.disk) for server in servers]
    return tuple(map(min, zip(*sizes, strict=True))) if sizes else None


def most(left: Amounts, right: Amounts) -> Amounts:
    return tuple(map(max, left, right))


def enabled(places: Iterable[Place]) -> list[Place]:
    return [place for place in places if place.node.is_enabled]
