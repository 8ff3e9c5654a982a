"""Search capacity for PENDING servers: free capacity, servers that may move, and servers that may be deleted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from audits.strategies.placement import Amounts, FirstFit, Place, Placement, enabled
from cluster.models import Server
from cluster.snapshot import ClusterSnapshot, ServerSnapshot

# How many nodes are tried for one server that waits, and for one that is to leave a node and pushes others aside.
TRIES = {True: 30, False: 4}
# The number of nodes with a solution, after which the search for a cheaper one ends.
ENOUGH = 3
# How often what leaves a node may look for others to push aside, for one server that waits.
PATIENCE = 6
# Metadata by which the owner of a server allows its deletion for others.
PREEMPTIBLE, DELETE = "preemptible", "delete"
NOWHERE: frozenset[str] = frozenset()


def amounts_of(server: ServerSnapshot) -> Amounts:
    return server.vcpus, server.memory, server.disk


def missing_capacity(place: Place, server: ServerSnapshot) -> Amounts:
    """Return what a node lacks for a server to go there."""
    return tuple(max(wanted - free, 0) for wanted, free in zip(amounts_of(server), place.free, strict=True))


class Usefulness(NamedTuple):
    """The usefulness of moving a server away: best if it is sufficient alone, and of these the smallest."""

    suffices: bool
    rank: float


def rate_usefulness(amounts: Amounts, wanted: Amounts) -> Usefulness:
    """Compare what a server takes to what is missing."""
    shares = [amount / least for amount, least in zip(amounts, wanted, strict=True) if least > 0]
    suffices = min(shares, default=0) >= 1
    return Usefulness(suffices, -sum(shares) if suffices else sum(min(share, 1) for share in shares))


class RemovableAmounts:
    """The amounts of the servers that may leave a node: their totals, and the largest of each kind."""

    def __init__(self, amounts: Sequence[Amounts]) -> None:
        self.number = len(amounts)
        self.totals = tuple(map(sum, zip(*amounts, strict=True))) or (0, 0, 0)
        self.largest = tuple(map(max, zip(*amounts, strict=True))) or (0, 0, 0)

    def least(self, wanted: Amounts) -> float:
        """Return how many of them must leave at least until so much is free; infinity, if that is never."""
        number = 0.0
        for total, largest, amount in zip(self.totals, self.largest, wanted, strict=True):
            if amount > total:
                return inf
            if amount > 0:
                number = max(number, ceil(amount / largest))
        return number


@dataclass(frozen=True)
class Step:
    """A server comes to its target, leaves its source, or both.

    Without a source it is one that waits and is built, without a target one that is deleted.
    """

    server: ServerSnapshot
    source: Place | None
    target: Place | None


@dataclass(frozen=True)
class AllowedMeans:
    """The allowed means: how deep moves may displace other servers, and whether servers may be deleted."""

    depth: int
    deleting: bool


# What is gentler comes first.
MEANS = (
    AllowedMeans(0, deleting=False),
    AllowedMeans(1, deleting=False),
    AllowedMeans(0, deleting=True),
    AllowedMeans(1, deleting=True),
)


def cost(steps: list[Step]) -> tuple[int, int]:
    """Return how many servers are deleted, and how many are moved."""
    deletions = sum(step.target is None for step in steps)
    return deletions, len(steps) - deletions


class CapacitySearch:
    """The nodes that may take servers, the fullest first, and the steps that were decided on so far, in their order.

    Each step was possible when those before it had been taken. No server is moved twice.
    """

    def __init__(self, cluster: ClusterSnapshot) -> None:
        self.placement = Placement(cluster)
        self.places = sorted(
            enabled(self.placement.places.values()), key=lambda place: (place.free_memory, place.hostname)
        )
        self.targets = FirstFit(self.places, attrgetter("free"))
        self.steps: list[Step] = []
        self.moved: set[UUID] = set()
        self.removable: dict[str, tuple[RemovableAmounts, RemovableAmounts]] = {}
        self.unplaceable: list[ServerSnapshot] = []
        self.remaining_attempts = 0

    def find_capacity(self, server: ServerSnapshot) -> bool:
        """Find capacity for a PENDING server and reserve it; return whether there is any."""
        if self.place_directly(server, None, NOWHERE):
            return True
        if any(needs_more(server, one) for one in self.unplaceable):
            return False
        self.remaining_attempts = PATIENCE
        if any(self.place_by_clearing(server, None, NOWHERE, means) for means in MEANS):
            return True
        self.unplaceable.append(server)
        return False

    def place_directly(self, server: ServerSnapshot, source: Place | None, barred: frozenset[str]) -> bool:
        """Place a server on a node that has enough capacity already."""
        target = self.targets.find(
            amounts_of(server), lambda place: place.admits(server) and place.hostname not in barred
        )
        if target is None:
            return False
        self.apply_step(Step(server, source, target))
        return True

    def place_by_clearing(
        self, server: ServerSnapshot, source: Place | None, barred: frozenset[str], means: AllowedMeans
    ) -> bool:
        """Move other servers off a node so that a server can go there: the node where that takes the fewest steps."""
        best: list[Step] = []
        found = 0
        begin = len(self.steps)
        for least, place in self.candidates(server, barred, means)[: TRIES[source is None]]:
            if (best and least >= cost(best)) or found == ENOUGH:
                break
            if self.clear_node(place, server, barred, means, len(best) - 1 if best and not means.deleting else inf):
                found += 1
                steps = [*self.steps[begin:], Step(server, source, place)]
                best = steps if not best or cost(steps) < cost(best) else best
            self.undo(begin)
        for step in best:
            self.apply_step(step)
        return bool(best)

    def candidates(
        self, server: ServerSnapshot, barred: frozenset[str], means: AllowedMeans
    ) -> list[tuple[tuple[int, int], Place]]:
        """Return the nodes that could be cleared, those with the lowest cost first, with a lower bound of the cost.

        The cost includes the step of the server itself.
        """
        found = []
        for place in self.places:
            if place.hostname in barred or not place.admits(server):
                continue
            wanted = missing_capacity(place, server)
            moves, deletions = self.removable_amounts(place)
            # Of what is equal otherwise, that comes first where less memory has to be moved.
            by_moves, memory = moves.least(wanted), wanted[1]
            if means.deleting and deletions.number:
                # Where moves alone would do, they were tried before; what both do together is not known beforehand.
                found.append(((deletions.least(wanted), by_moves, memory), (1, 1), place))
            elif by_moves < inf:
                found.append(((inf, by_moves, memory), (0, int(by_moves) + 1), place))
        found.sort(key=lambda one: one[0])
        return [(cost_there, place) for _, cost_there, place in found]

    def removable_amounts(self, place: Place) -> tuple[RemovableAmounts, RemovableAmounts]:
        """Return what may be moved away from a node, and what may be deleted there, kept until the node changes."""
        if place.hostname not in self.removable:
            present = place.servers.values()
            moves = RemovableAmounts([amounts_of(server) for server in present if self.may_move(server)])
            deletions = RemovableAmounts([amounts_of(server) for server in present if self.may_delete(server)])
            self.removable[place.hostname] = moves, deletions
        return self.removable[place.hostname]

    def may_move(self, server: ServerSnapshot) -> bool:
        return server.is_active and server.uuid not in self.moved and self.placement.can_move(server)

    def may_delete(self, server: ServerSnapshot) -> bool:
        """Return whether the server's owner allows its deletion for others.

        A server that was only stopped would keep its capacity.
        """
        is_at_rest = server.uuid not in self.moved | self.placement.arriving and server.state != Server.State.PENDING
        wish = str(server.metadata.get(PREEMPTIBLE, "")).strip().lower()
        return wish == DELETE and is_at_rest and not server.locked and not server.watcher_exclude

    def clear_node(
        self, place: Place, server: ServerSnapshot, barred: frozenset[str], means: AllowedMeans, most: float
    ) -> bool:
        """Move servers off a node until another one fits there, and return whether the steps were few enough."""
        begin = len(self.steps)
        elsewhere = barred | {place.hostname}
        present = list(place.servers.values())
        deletable = [one for one in present if means.deleting and self.may_delete(one)]
        movable = [one for one in present if self.may_move(one)]
        end = begin + most

        def send_away(leaving: ServerSnapshot) -> None:
            if len(self.steps) < end:
                self.send_away(leaving, place, elsewhere, means)

        move_until_fit(place, server, movable, send_away, deletable)
        move_until_fit(
            place, server, [one for one in deletable if one.uuid in place.servers], partial(self.delete_server, place)
        )
        if not place.fits(server):
            return False
        self.undo_unnecessary_steps(place, server, begin)
        return True

    def send_away(self, leaving: ServerSnapshot, place: Place, barred: frozenset[str], means: AllowedMeans) -> bool:
        if self.place_directly(leaving, place, barred):
            return True
        if not means.depth or not self.remaining_attempts:
            return False
        self.remaining_attempts -= 1
        return self.place_by_clearing(leaving, place, barred, AllowedMeans(means.depth - 1, means.deleting))

    def delete_server(self, place: Place, leaving: ServerSnapshot) -> None:
        self.apply_step(Step(leaving, place, None))

    def undo_unnecessary_steps(self, place: Place, server: ServerSnapshot, begin: int) -> None:
        """Undo steps that turn out to be unnecessary: deletions first, the largest first.

        If servers were displaced, the steps stay, since the displaced ones may have moved to the capacity that others
        left.
        """
        steps = self.steps[begin:]
        if any(step.source is not place for step in steps):
            return
        for step in sorted(steps, key=lambda one: (one.target is None, *amounts_of(one.server)), reverse=True):
            place.take(step.server)
            still_fits = place.fits(server)
            place.take(step.server, -1)
            if still_fits:
                self.steps.remove(step)
                self.reverse(step)

    def apply_step(self, step: Step) -> None:
        server, source, target = step.server, step.source, step.target
        if source:
            del source.servers[server.uuid]
            source.take(server, -1)
        if target:
            target.servers[server.uuid] = server
            target.take(server)
        if source and target:
            self.moved.add(server.uuid)
        self.steps.append(step)
        self.invalidate(step)

    def undo(self, begin: int) -> None:
        while len(self.steps) > begin:
            self.reverse(self.steps.pop())

    def reverse(self, step: Step) -> None:
        server, source, target = step.server, step.source, step.target
        if target:
            del target.servers[server.uuid]
            target.take(server, -1)
        if source:
            source.servers[server.uuid] = server
            source.take(server)
        self.moved.discard(server.uuid)
        self.invalidate(step)

    def invalidate(self, step: Step) -> None:
        """Forget what was known of the nodes that changed."""
        for place in filter(None, (step.source, step.target)):
            self.targets.refresh(place)
            self.removable.pop(place.hostname, None)


def move_until_fit(
    place: Place,
    server: ServerSnapshot,
    movable: Sequence[ServerSnapshot],
    send: Callable[[ServerSnapshot], None],
    deletable: Sequence[ServerSnapshot] = (),
) -> None:
    """Move the most useful servers away until a server fits on this node, or the rest would not be sufficient.

    Args:
        deletable: servers that could be deleted after that, which count as sufficient.
    """
    sure = {one.uuid: amounts_of(one) for one in deletable}
    left = {one.uuid: amounts_of(one) for one in movable}
    by_uuid = {one.uuid: one for one in movable}
    while any(wanted := missing_capacity(place, server)):
        if not left or RemovableAmounts([*(sure | left).values()]).least(wanted) == inf:
            return
        chosen = max(left, key=lambda uuid: rate_usefulness(left[uuid], wanted))
        del left[chosen]
        send(by_uuid[chosen])
        if chosen not in place.servers:
            sure.pop(chosen, None)


def needs_more(server: ServerSnapshot, other: ServerSnapshot) -> bool:
    """Return whether a server needs at least as much as another one would have needed, and in no other zone."""
    is_as_large = all(own >= its for own, its in zip(amounts_of(server), amounts_of(other), strict=True))
    return is_as_large and other.pinned_az in {"", server.pinned_az}
