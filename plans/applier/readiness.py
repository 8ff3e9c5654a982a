"""Queries for the actions of a plan that become ready when others end."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
# The state is checked in Python: if only keys select the rows, missing statistics cannot lead to a slow plan.
WITH_OPEN_PARENTS = Query(Action.objects.present().with_open_parents().filter(pk__in=KEYS).order_by("pk"))
# Selected by their keys and without a join, which would read all actions of a new plan that has no statistics yet.
PREFETCHED_ROWS = Query(
    Action.objects.present()
    .with_open_parents()
    .annotate(open_running=Action.objects.open_parent_count(parent__pk__in=OTHER_KEYS))
    .filter(pk__in=KEYS)
)
ROWS = Query(Action.objects.present().filter(pk__in=KEYS).order_by("pk"))
FIRST_CHILDREN = Query(
    ActionParent.objects.filter(parent=Placeholder("parent")).order_by("child").values_list("child")[: len(KEYS)]
)
# The states of actions that the end of others releases: to begin, to continue, or to be aborted.
RELEASED = frozenset({Action.State.PENDING, Action.State.CANCELLING})


def bind_keys(keys: Sequence[int], places: Sequence[Placeholder] = KEYS) -> dict[str, int]:
    """Return values for all placeholders. The last key is repeated for those that are left."""
    return {place.name: key for place, key in zip(places, [*keys, *[keys[-1]] * len(places)], strict=False)}


def read_actions(keys: Sequence[int]) -> dict[int, Action]:
    """Return the current rows of actions by key, without deleted ones."""
    pages = [keys[begin : begin + len(KEYS)] for begin in range(0, len(keys), len(KEYS))]
    return {action.pk: action for page in pages for action in ROWS.rows(**bind_keys(page))}


def find_released_child(parent: Action) -> Action | None:
    """Return the first child of an action that is ready now, or None. Only its first few children are queried."""
    keys = [key for (key,) in FIRST_CHILDREN.rows(parent=parent.pk)]
    for action in WITH_OPEN_PARENTS.rows(**bind_keys(keys)) if keys else ():
        if is_ready(action):
            found: Action = action
            return found
    return None


class Releases:
    """The children of ended actions, queried only when their readiness may have changed.

    The first query of a child returns its number of unfinished parents, and the next one follows when as many have
    ended. Otherwise an action with thousands of parents would be queried thousands of times. For parents that another
    process ends without a report, the remaining children are queried once per `settings.POLL_INTERVAL` seconds.

    If there is time, children are prefetched while their parents are running (`PrefetchedChildren`), and need no
    query later.
    """

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.candidates: dict[int, None] = {}  # An ordered set.
        self.awaited: dict[int, int] = {}
        self.waiting: set[int] = set()
        self.prefetched = PrefetchedChildren()
        self.released: list[Action] = []
        self.next_recheck = 0.0

    def __bool__(self) -> bool:
        """Return whether there are actions to query now."""
        return bool(self.released or self.ended or self.candidates or self.is_recheck_due)

    @property
    def is_recheck_due(self) -> bool:
        return bool(self.waiting) and time.monotonic() >= self.next_recheck

    def clear(self) -> None:
        self.ended.clear()
        self.candidates.clear()
        self.awaited.clear()
        self.waiting.clear()
        self.prefetched.clear()
        self.released.clear()

    def record_end(self, key: int) -> None:
        self.forget(key)
        self.ended.append(key)

    def forget(self, key: int) -> None:
        """Discard the prefetched children of an action that may have other children now."""
        self.prefetched.forget(*self.prefetched.end(key) or ())

    def record_success(self, key: int) -> None:
        """Record the end of an action that has no further consequences for its children."""
        children = self.prefetched.end(key)
        if children is None:
            self.ended.append(key)
        for child in children or ():
            self.record_parent_end(child)

    def record_parent_end(self, child: int) -> None:
        """Record that one of the parents of a child has ended."""
        left = self.prefetched.count_open_parents(child)
        if left is None:
            self.count_down(child, 1)
        elif left:
            self.add_waiting(child, left)
        else:
            self.awaited.pop(child, None)
            self.waiting.discard(child)
            self.released.append(self.prefetched.pop(child))

    def add_candidate(self, key: int) -> None:
        """Query an action later that may be ready without the end of a parent, such as a deferred one."""
        self.candidates[key] = None

    def find_ready(self) -> list[Action]:
        """Return some of the actions that became ready; none only if there are none."""
        if self.released:
            found, self.released = self.released, []
            return found
        while self.ended:
            parents, self.ended = self.ended[: len(KEYS)], self.ended[len(KEYS) :]
            for child, number in CHILDREN.rows(**bind_keys(parents)):
                self.count_down(child, number)
        if self.is_recheck_due:
            self.next_recheck = time.monotonic() + settings.POLL_INTERVAL
            self.candidates.update(dict.fromkeys(self.waiting))
            self.waiting.clear()
        released: list[Action] = []
        while not released and self.candidates:
            released = self.query_candidates()
        return released

    def add_waiting(self, child: int, parents: int) -> None:
        self.awaited[child] = parents
        self.waiting.add(child)

    def count_down(self, child: int, number: int) -> None:
        self.prefetched.forget(child)
        left = self.awaited.pop(child, number) - number
        if left > 0:
            self.add_waiting(child, left)
        else:
            self.waiting.discard(child)
            self.candidates[child] = None

    def query_candidates(self) -> list[Action]:
        keys = list(islice(self.candidates, len(KEYS)))
        for key in keys:
            del self.candidates[key]
        released = []
        for action in WITH_OPEN_PARENTS.rows(**bind_keys(keys)):
            if action.open_parent_count:
                self.awaited[action.pk] = action.open_parent_count
            elif is_ready(action, states=RELEASED):
                # Deferred actions are not ready. The run adds them as candidates when they become due.
                released.append(action)
        return released


@dataclass(frozen=True, slots=True)
class PrefetchedChild:
    """The row of a child, and the running parents for which it waits."""

    row: Action
    open_parents: set[int]


class PrefetchedChildren:
    """The children of a few running actions, with the rows of the children that wait for no other parents.

    A prefetched row may be out of date; the guards of the action that begins compare it with the database. A child of
    which a parent had already ended when it was read is queried when the report of that parent arrives.
    """

    def __init__(self) -> None:
        self.children_by_parent: dict[int, tuple[float, list[int]]] = {}
        """The time of the query and the keys of the children; no keys if they have to be queried again."""
        self.children: dict[int, PrefetchedChild] = {}

    def clear(self) -> None:
        self.children_by_parent.clear()
        self.children.clear()

    def read_children(self, running: Iterable[int]) -> None:
        """Read the children of a few running actions, except of those whose children were read before."""
        parents = [key for key in running if key not in self.children_by_parent][: len(KEYS)]
        if not parents:
            return
        now = time.monotonic()
        self.children_by_parent.update((parent, (now, [])) for parent in parents)
        links = PREFETCHED_CHILDREN.rows(**bind_keys(parents))
        if links and len(links) <= len(KEYS):
            self.read_rows(parents, links)

    def read_rows(self, parents: Sequence[int], links: Sequence[tuple[int, int]]) -> None:
        """Read the rows of the children that wait for no other parents.

        Args:
            links: all pairs of one of the parents and its child.
        """
        open_parents: dict[int, set[int]] = defaultdict(set)
        for parent, child in links:
            open_parents[child].add(parent)
            self.children_by_parent[parent][1].append(child)
        for row in PREFETCHED_ROWS.rows(**bind_keys([*open_parents]), **bind_keys(parents, OTHER_KEYS)):
            # If all open parents are among the given ones, it waits for no other.
            waits_only_for_these = row.open_parent_count == row.open_running == len(open_parents[row.pk])
            if waits_only_for_these and is_ready(row, ended=row.open_running):
                self.children[row.pk] = PrefetchedChild(row, open_parents[row.pk])

    def end(self, parent: int) -> list[int] | None:
        """Record the end of an action, and return the keys of its children, or None if they have to be queried.

        Children that were read more than `settings.POLL_INTERVAL` seconds ago may be out of date.
        """
        read_at, keys = self.children_by_parent.pop(parent, (0.0, []))
        if not keys:
            return None
        if time.monotonic() - read_at > settings.POLL_INTERVAL:
            self.forget(*keys)
            return None
        for key in keys:
            if child := self.children.get(key):
                child.open_parents.discard(parent)
        return keys

    def count_open_parents(self, child: int) -> int | None:
        """Return the number of open parents of a child, or None if it was not prefetched."""
        prefetched = self.children.get(child)
        return len(prefetched.open_parents) if prefetched else None

    def pop(self, child: int) -> Action:
        """Remove and return a child without open parents."""
        return self.children.pop(child).row

    def forget(self, *children: int) -> None:
        """Discard the rows of children that may have changed."""
        for child in children:
            self.children.pop(child, None)
