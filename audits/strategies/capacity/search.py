"""The search of capacity for PENDING servers, by moves and deletions of other servers."""

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

# The number of nodes that are tried for one waiting server (True), and for one displaced server (False).
TRIES = {True: 30, False: 4}
# The number of nodes with a solution, after which the search for a cheaper one ends.
ENOUGH = 3
# The number of attempts to displace further servers by displaced ones, for one waiting server.
PATIENCE = 6
# The metadata by which the owner of a server allows its deletion for other servers.
PREEMPTIBLE, DELETE = "preemptible", "delete"
NOWHERE: frozenset[str] = frozenset()


def amounts_of(server: ServerSnapshot) -> Amounts:
    return server.vcpus, server.memory, server.disk


def missing_capacity(place: Place, server: ServerSnapshot) -> Amounts:
    """Return the amounts that a node lacks for a server."""
    return tuple(max(amount - free, 0) for amount, free in zip(amounts_of(server), place.free, strict=True))


class Usefulness(NamedTuple):
    """The usefulness of moving a server away: best are sufficient ones, and the smallest of these."""

    suffices: bool
    rank: float


def rate_usefulness(amounts: Amounts, required_amounts: Amounts) -> Usefulness:
    """Return the usefulness of the amounts of a server for the missing amounts."""
    shares = [amount / required for amount, required in zip(amounts, required_amounts, strict=True) if required > 0]
    suffices = min(shares, default=0) >= 1
    return Usefulness(suffices, -sum(shares) if suffices else sum(min(share, 1) for share in shares))


class RemovableAmounts:
    """The amounts of the servers that may leave a node: their totals, and the largest of each kind."""

    def __init__(self, amounts: Sequence[Amounts]) -> None:
        self.number = len(amounts)
        self.totals = tuple(map(sum, zip(*amounts, strict=True))) or (0, 0, 0)
        self.largest = tuple(map(max, zip(*amounts, strict=True))) or (0, 0, 0)

    def least(self, required: Amounts) -> float:
        """Return a lower bound of the number of servers that must leave to free these amounts, or infinity."""
        number = 0.0
        for total, largest, amount in zip(self.totals, self.largest, required, strict=True):
            if amount > total:
                return inf
            if amount > 0:
                number = max(number, ceil(amount / largest))
        return number


@dataclass(frozen=True)
class Step:
    """A change of the host of a server.

    A server without a source is waiting and is built. A server without a target is deleted.
    """

    server: ServerSnapshot
    source: Place | None
    target: Place | None


@dataclass(frozen=True)
class AllowedMeans:
    """The allowed means: the depth to which moves may displace other servers, and whether deletions are allowed."""

    depth: int
    deleting: bool


# Means with less effect on other servers come first.
MEANS = (
    AllowedMeans(0, deleting=False),
    AllowedMeans(1, deleting=False),
    AllowedMeans(0, deleting=True),
    AllowedMeans(1, deleting=True),
)


def cost(steps: list[Step]) -> tuple[int, int]:
    """Return the numbers of deleted and of moved servers."""
    deletions = sum(step.target is None for step in steps)
    return deletions, len(steps) - deletions


class CapacitySearch:
    """The possible destinations, with the least free capacity first, and the chosen steps in order.

    Each step is possible after the previous ones. No server is moved twice.
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
        """Find and reserve capacity for a PENDING server, and return whether there is any."""
        if self.place_directly(server, None, NOWHERE):
            return True
        if any(needs_more(server, other) for other in self.unplaceable):
            return False
        self.remaining_attempts = PATIENCE
        if any(self.place_by_clearing(server, None, NOWHERE, means) for means in MEANS):
            return True
        self.unplaceable.append(server)
        return False

    def place_directly(self, server: ServerSnapshot, source: Place | None, barred: frozenset[str]) -> bool:
        """Place a server on a node that already has enough capacity, and return whether there is one."""
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
        """Clear capacity on the node for which this takes the fewest steps, and return whether this is possible."""
        best: list[Step] = []
        successes = 0
        begin = len(self.steps)
        for lower_bound, place in self.candidates(server, barred, means)[: TRIES[source is None]]:
            if (best and lower_bound >= cost(best)) or successes == ENOUGH:
                break
            if self.clear_node(place, server, barred, means, len(best) - 1 if best and not means.deleting else inf):
                successes += 1
                steps = [*self.steps[begin:], Step(server, source, place)]
                best = steps if not best or cost(steps) < cost(best) else best
            self.undo(begin)
        for step in best:
            self.apply_step(step)
        return bool(best)

    def candidates(
        self, server: ServerSnapshot, barred: frozenset[str], means: AllowedMeans
    ) -> list[tuple[tuple[int, int], Place]]:
        """Return the nodes that could be cleared, lowest cost first, with a lower bound of the cost.

        The cost includes the step of the server itself.
        """
        ranked = []
        for place in self.places:
            if place.hostname in barred or not place.admits(server):
                continue
            missing = missing_capacity(place, server)
            moves, deletions = self.removable_amounts(place)
            # If the costs are equal, nodes from which less memory has to be moved come first.
            by_moves, memory = moves.least(missing), missing[1]
            if means.deleting and deletions.number:
                # Moves alone were tried before. The cost of moves and deletions together is not known beforehand.
                ranked.append(((deletions.least(missing), by_moves, memory), (1, 1), place))
            elif by_moves < inf:
                ranked.append(((inf, by_moves, memory), (0, int(by_moves) + 1), place))
        ranked.sort(key=lambda entry: entry[0])
        return [(cost_there, place) for _, cost_there, place in ranked]

    def removable_amounts(self, place: Place) -> tuple[RemovableAmounts, RemovableAmounts]:
        """Return the amounts that can be moved away and deleted on a node, cached until the node changes."""
        if place.hostname not in self.removable:
            present = place.servers.values()
            moves = RemovableAmounts([amounts_of(server) for server in present if self.may_move(server)])
            deletions = RemovableAmounts([amounts_of(server) for server in present if self.may_delete(server)])
            self.removable[place.hostname] = moves, deletions
        return self.removable[place.hostname]

    def may_move(self, server: ServerSnapshot) -> bool:
        return server.is_active and server.uuid not in self.moved and self.placement.can_move(server)

    def may_delete(self, server: ServerSnapshot) -> bool:
        """Return whether the owner of the server allows its deletion for other servers.

        Stopping a server would not free its capacity.
        """
        is_at_rest = server.uuid not in self.moved | self.placement.arriving and server.state != Server.State.PENDING
        permission = str(server.metadata.get(PREEMPTIBLE, "")).strip().lower()
        return permission == DELETE and is_at_rest and not server.locked and not server.watcher_exclude

    def clear_node(
        self, place: Place, server: ServerSnapshot, barred: frozenset[str], means: AllowedMeans, most: float
    ) -> bool:
        """Move servers away from a node until another one fits, and return whether the steps were few enough."""
        begin = len(self.steps)
        elsewhere = barred | {place.hostname}
        present = list(place.servers.values())
        deletable = [candidate for candidate in present if means.deleting and self.may_delete(candidate)]
        movable = [candidate for candidate in present if self.may_move(candidate)]
        end = begin + most

        def send_away(leaving: ServerSnapshot) -> None:
            if len(self.steps) < end:
                self.send_away(leaving, place, elsewhere, means)

        move_until_fit(place, server, movable, send_away, deletable)
        move_until_fit(
            place,
            server,
            [candidate for candidate in deletable if candidate.uuid in place.servers],
            partial(self.delete_server, place),
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
        """Undo steps that turn out to be unnecessary, deletions first, largest servers first.

        If servers were displaced, no steps are undone, because displaced servers may use the capacity that other steps
        freed.
        """
        steps = self.steps[begin:]
        if any(step.source is not place for step in steps):
            return
        for step in sorted(
            steps, key=lambda undone: (undone.target is None, *amounts_of(undone.server)), reverse=True
        ):
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
        """Invalidate the cached amounts of the nodes of a step."""
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
    """Move the most useful servers away until a server fits on this node, or the others would not be sufficient.

    Args:
        deletable: servers that can be deleted afterwards; with these, the others may be sufficient.
    """
    deletable_amounts = {candidate.uuid: amounts_of(candidate) for candidate in deletable}
    movable_amounts = {candidate.uuid: amounts_of(candidate) for candidate in movable}
    by_uuid = {candidate.uuid: candidate for candidate in movable}
    while any(missing := missing_capacity(place, server)):
        if (
            not movable_amounts
            or RemovableAmounts([*(deletable_amounts | movable_amounts).values()]).least(missing) == inf
        ):
            return
        best = max(movable_amounts, key=lambda uuid: rate_usefulness(movable_amounts[uuid], missing))
        del movable_amounts[best]
        send(by_uuid[best])
        if best not in place.servers:
            deletable_amounts.pop(best, None)


def needs_more(server: ServerSnapshot, other: ServerSnapshot) -> bool:
    """Return whether a server needs at least the amounts of another one, in the same zones or fewer."""
    is_as_large = all(
        amount >= other_amount for amount, other_amount in zip(amounts_of(server), amounts_of(other), strict=True)
    )
    return is_as_large and other.pinned_az in {"", server.pinned_az}
