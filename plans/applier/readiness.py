"""Find the actions of a plan that become ready when others end."""

import time
from collections.abc import Iterable, Sequence
from itertools import islice

from django.conf import settings
from django.db.models import Count, Q

from actions.models import Action, ActionParent
from actions.models.querysets import is_ready
from plans.applier.key_lists import KEYS, fill
from plans.applier.prefetch import PrefetchedChildren
from watcher_site.database.statements import Placeholder, Query

CHILDREN = Query(
    ActionParent.objects.filter(Q(parent__pk__in=KEYS)).order_by().values_list("child").annotate(Count("pk"))
)
# The state is looked at here and not there: where the keys alone choose the rows, no statistics can mislead.
WITH_OPEN_PARENTS = Query(Action.objects.present().with_open_parents().filter(pk__in=KEYS).order_by("pk"))
# What waited for others, and for nothing any more: to begin, to go on, or to be aborted.
RELEASED = frozenset({Action.State.PENDING, Action.State.CANCELLING})

ROWS = Query(Action.objects.present().filter(pk__in=KEYS).order_by("pk"))
FIRST_CHILDREN = Query(
    ActionParent.objects.filter(parent=Placeholder("parent")).order_by("child").values_list("child")[: len(KEYS)]
)


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

    def look_ahead(self, at_work: Iterable[int]) -> None:
        """Read the children of a few actions at work, for the case that these succeed soon."""
        self.prefetched.look(at_work)

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
        self.find_candidates()
        released: list[Action] = []
        while not released and self.candidates:
            released = self.query_candidates()
        return released

    def find_candidates(self) -> None:
        while self.ended:
            parents, self.ended = self.ended[: len(KEYS)], self.ended[len(KEYS) :]
            for child, number in CHILDREN.rows(**fill(parents)):
                self.count_down(child, number)
        if self.is_round_due:
            self.next_round = time.monotonic() + settings.POLL_INTERVAL
            self.candidates.update(dict.fromkeys(self.held_back))
            self.held_back.clear()

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
