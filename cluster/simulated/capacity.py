"""Free capacity of the nodes of a cloud in memory, and the scheduler's choice among them."""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable

from cluster.drivers.scheduler import UNITS, Room, free_of
from cluster.models import ComputeNode, Server


class Rooms:
    """The servers by node, each also where it is on its way to, and what they leave free.

    The nodes stand in the order in which the scheduler likes them: the one with the most memory free first, and else
    the one that has been known for longer. So one look mostly finds the best of thousands.
    """

    def __init__(self, nodes: Iterable[ComputeNode], servers: Iterable[Server]) -> None:
        self.by_node = {node.pk: Room(node, free_of(node, {})) for node in nodes}
        self.by_host = {room.node.hostname: room for room in self.by_node.values()}
        self.servers: dict[int, set[Server]] = defaultdict(set)
        self.use: dict[int, Counter[str]] = defaultdict(Counter)
        for server in servers:
            self.put(server)
        self.order = sorted(map(rank, self.by_node.values()))

    def named(self, hostname: str) -> list[Room]:
        return [self.by_host[hostname]] if hostname in self.by_host else []

    def find_best(self, server: Server, zone: str | None = None) -> list[Room]:
        """Return the one, of a zone or of any, that the scheduler would choose for a server, if there is any."""
        for memory, key in self.order:
            room = self.by_node[key]
            if -memory < server.memory and server.memory:
                break
            is_open = room.node.status == ComputeNode.Status.ENABLED and zone in {None, room.node.zone}
            if is_open and room.suits(server):
                return [room]
        return []

    def put(self, server: Server) -> None:
        for key in places(server):
            self.servers[key].add(server)
            self.count(key, server, 1)

    def take(self, server: Server) -> None:
        for key in places(server):
            self.servers[key].discard(server)
            self.count(key, server, -1)

    def count(self, key: int, server: Server, sign: int) -> None:
        """Count whole numbers, from which what is free follows: sums of fractions would drift."""
        for resource in UNITS:
            self.use[key][resource] += sign * server.taken(resource)
        if room := self.by_node.get(key):
            room.free.update(free_of(room.node, self.use[key]))

    def move(self, server: Server, **changes: object) -> None:
        """Change a server's place or its size, and what is free with it."""
        touched = [*places(server), *(node.pk for node in changes.values() if isinstance(node, ComputeNode))]
        rooms = [self.by_node[key] for key in set(touched) if key in self.by_node]
        for room in rooms:
            del self.order[bisect_left(self.order, rank(room))]
        self.take(server)
        for name, value in changes.items():
            setattr(server, name, value)
        self.put(server)
        for room in rooms:
            insort(self.order, rank(room))


def rank(room: Room) -> tuple[float, int]:
    return -room.free["memory"], room.node.pk


def places(server: Server) -> list[int]:
    return [key for key in (server.node_id, server.destination_id) if key is not None]
