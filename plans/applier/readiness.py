"""Find the actions of a plan that become ready when others end: prefetched while these run, or queried then."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import Count, Q

from actions.models import Action, ActionParent
from actions.models.querysets import is_ready
from watcher_site.database.queries import Placeholder, Query

KEYS: list[Any] = [Placeholder(f"key{number}") for number in range(8)]
OTHER_KEYS: list[Any] = [Placeholder(f"other_key{number}") for number in range(8)]
CHILDREN = Query(
    ActionParent.objects.filter(Q(parent__pk__in=KEYS)).order_by().values_list("child").annotate(Count("pk"))
)
PREFETCHED_CHILDREN = Query(
    ActionParent.objects.filter(parent__pk__in=KEYS).order_by().values_list("parent", "child")[: len(KEYS) + 1]
)
# The state is looked at here and not there: where the keys alone choose the rows, no statistics can mislead.
WITH_OPEN_PARENTS = Query(Action.objects.present().with_open_parents().filter(pk__in=KEYS).order_by("pk"))
# Chosen by their keys alone and joined with nothing: before a new plan has statistics, a join reads all of it.
PREFETCHED_ROWS = Query(
    Action.objects.present()
    .with_open_parents()
    .annotate(open_at_work=Action.objects.open_parent_count(parent__pk__in=OTHER_KEYS))
    .filter(pk__in=KEYS)
)
ROWS = Query(Action.objects.present().filter(pk__in=KEYS).order_by("pk"))
FIRST_CHILDREN = Query(
    ActionParent.objects.filter(parent=Placeholder("parent")).order_by("child").values_list("child")[: len(KEYS)]
)
# What waited for others, and for nothing any more: to begin, to go on, or to be aborted.
RELEASED = frozenset({Action.State.PENDING, Action.State.CANCELLING})


def fill(keys: Sequence[int], places: Sequence[Placeholder] = KEYS) -> dict[str, int]:
    """Give every placeholder a value: the last key stands for those that are left over."""
    return {place.name: key for place, key in zip(places, [*keys, *[keys[-1]] * len(places)], strict=False)}


def rows_of(keys: Sequence[int]) -> dict[int, Action]:
    """Return actions as they stand in the table, by their keys; those that were deleted are left out."""
    pages = [keys[begin : begin + len(KEYS)] for begin in range(0, len(keys), len(KEYS))]
    return {action.pk: action for page in pages for action in ROWS.rows(**fill(page))}


def next_released(parent: Action) -> Action | None:
    """Return the first of the actions that the end of this one made the way free for, if there is any among a few."""
    keys = [key for (key,) in FIRST_CHILDREN.rows(parent=parent.pk)]
    for action in WITH_OPEN_PARENTS.rows(**fill(keys)) if keys else ():
        if is_ready(action):
            found: Action = action
            return found
    return None


class Releases:
    """Queries the children of ended actions, each no more often than its readiness may have changed.

    The first query returns the number of unfinished parents; the next one comes when so many more have ended.
    Otherwise an action with thousands of parents would be queried thousands of times, each reading thousands of rows.
    For parents that another process ends, without a report to this one, the remaining children are queried once per
    `settings.POLL_INTERVAL` seconds.

    If there is time, children are prefetched while their parents are running (`PrefetchedChildren`): they need no
    query later.
    """

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.candidates: dict[int, None] = {}  # An ordered set.
        self.awaited: dict[int, int] = {}
        self.held_back: set[int] = set()
        self.prefetched = PrefetchedChildren()
        self.released: list[Action] = []
        self.next_round = 0.0

    def __bool__(self) -> bool:
        """Return whether there are actions to query now."""
        return bool(self.released or self.ended or self.candidates or self.is_round_due)

    @property
    def is_round_due(self) -> bool:
        return bool(self.held_back) and time.monotonic() >= self.next_round

    def clear(self) -> None:
        self.ended.clear()
        self.candidates.clear()
        self.awaited.clear()
        self.held_back.clear()
        self.prefetched.clear()
        self.released.clear()

    def note_end(self, key: int) -> None:
        self.forget(key)
        self.ended.append(key)

    def forget(self, key: int) -> None:
        """Forget what was read of the children of an action that others than these may wait for now."""
        self.prefetched.forget(*self.prefetched.end(key) or ())

    def note_success(self, key: int) -> None:
        """Note the end of an action which means for others nothing but that they need not wait for it any more."""
        children = self.prefetched.end(key)
        if children is None:
            self.ended.append(key)
        for child in children or ():
            self.note_parent(child)

    def note_parent(self, child: int) -> None:
        """Note that a child waits for one parent less."""
        left = self.prefetched.waits_for(child)
        if left is None:
            self.count_down(child, 1)
        elif left:
            self.hold_back(child, left)
        else:
            self.awaited.pop(child, None)
            self.held_back.discard(child)
            self.released.append(self.prefetched.take(child))

    def consider(self, key: int) -> None:
        """Query an action that may have become ready by itself."""
        self.candidates[key] = None

    def find(self) -> list[Action]:
        """Return actions that became ready, some at least if there are any."""
        if self.released:
            found, self.released = self.released, []
            return found
        while self.ended:
            parents, self.ended = self.ended[: len(KEYS)], self.ended[len(KEYS) :]
            for child, number in CHILDREN.rows(**fill(parents)):
                self.count_down(child, number)
        if self.is_round_due:
            self.next_round = time.monotonic() + settings.POLL_INTERVAL
            self.candidates.update(dict.fromkeys(self.held_back))
            self.held_back.clear()
        released: list[Action] = []
        while not released and self.candidates:
            released = self.query_candidates()
        return released

    def hold_back(self, child: int, parents: int) -> None:
        self.awaited[child] = parents
        self.held_back.add(child)

    def count_down(self, child: int, number: int) -> None:
        self.prefetched.forget(child)
        left = self.awaited.pop(child, number) - number
        if left > 0:
            self.hold_back(child, left)
        else:
            self.held_back.discard(child)
            self.candidates[child] = None

    def query_candidates(self) -> list[Action]:
        keys = list(islice(self.candidates, len(KEYS)))
        for key in keys:
            del self.candidates[key]
        released = []
        for action in WITH_OPEN_PARENTS.rows(**fill(keys)):
            if action.open_parent_count:
                self.awaited[action.pk] = action.open_parent_count
            elif is_ready(action, states=RELEASED):
                # The run of the plan knows deferred actions, and considers them when their time comes.
                released.append(action)
        return released


class PrefetchedChildren:
    """The children of a few running actions, with the rows of those that wait for no other parents.

    The rows show one moment in the recent past: the guards of an action that is begun by its row compare it with the
    table. A child whose parent had ended at that moment, with its report still to come, is queried when the report has
    come.
    """

    def __init__(self) -> None:
        self.looked_at: dict[int, float] = {}
        self.children: dict[int, list[int]] = {}
        self.rows: dict[int, Action] = {}
        self.open_parents: dict[int, set[int]] = {}

    def clear(self) -> None:
        self.looked_at.clear()
        self.children.clear()
        self.rows.clear()
        self.open_parents.clear()

    def look(self, at_work: Iterable[int]) -> None:
        """Read the children of a few actions at work, for the case that these succeed soon.

        Those of which they were read already are left out.
        """
        parents = [key for key in at_work if key not in self.looked_at][: len(KEYS)]
        if not parents:
            return
        self.looked_at.update(dict.fromkeys(parents, time.monotonic()))
        families = PREFETCHED_CHILDREN.rows(**fill(parents))
        if families and len(families) <= len(KEYS):
            self.read(parents, families)

    def read(self, parents: Sequence[int], families: Sequence[tuple[int, int]]) -> None:
        """Read the children of these parents that wait for these alone, given all of them, each beside its parent."""
        awaited: dict[int, set[int]] = defaultdict(set)
        for parent, child in families:
            awaited[child].add(parent)
            self.children.setdefault(parent, []).append(child)
        for row in PREFETCHED_ROWS.rows(**fill([*awaited]), **fill(parents, OTHER_KEYS)):
            # As many as these, of which each is open: so there is no other.
            waits_for_these = row.open_parent_count == row.open_at_work == len(awaited[row.pk])
            if waits_for_these and is_ready(row, ended=row.open_at_work):
                self.rows[row.pk], self.open_parents[row.pk] = row, awaited[row.pk]

    def end(self, parent: int) -> list[int] | None:
        """Note the end of an action, and return the keys of its children, or None if these are not known, or no more.

        Where it took long, what was read may be out of date, and there is time to ask anew.
        """
        since = self.looked_at.pop(parent, None)
        children = self.children.pop(parent, None)
        if children is None or since is None or time.monotonic() - since > settings.POLL_INTERVAL:
            if children:
                self.forget(*children)
            return None
        for child in children:
            self.open_parents.get(child, set()).discard(parent)
        return children

    def waits_for(self, child: int) -> int | None:
        """Return for how many actions a child waits still, or None if that is not known."""
        return len(self.open_parents[child]) if child in self.rows else None

    def take(self, child: int) -> Action:
        """Return a child that waits for nothing any more, and forget it."""
        del self.open_parents[child]
        return self.rows.pop(child)

    def forget(self, *children: int) -> None:
        """Forget what may have changed meanwhile."""
        for child in children:
            self.open_parents.pop(child, None)
            self.rows.pop(child, None)
