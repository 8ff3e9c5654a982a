"""Which actions of a plan become ready as others of it end."""

import time
from collections.abc import Sequence
from itertools import islice

from django.conf import settings
from django.db.models import Count, Q
from django.utils import timezone

from actions.models import Action, ActionParent
from watcher_site.statements import Placeholder, Query

KEYS = [Placeholder(f"key{number}") for number in range(8)]

CHILDREN = Query(
    ActionParent.objects.filter(Q(parent__pk__in=KEYS)).order_by().values_list("child").annotate(Count("pk"))
)
# The state is looked at here and not there: where the keys alone choose the rows, no statistics can mislead.
WITH_OPEN_PARENTS = Query(Action.objects.present().with_open_parents().filter(pk__in=KEYS).order_by("pk"))
# What waited for others, and for nothing any more: to begin, to go on, or to be aborted.
RELEASED = frozenset({Action.State.PENDING, Action.State.CANCELLING})


def fill(keys: Sequence[int]) -> dict[str, int]:
    """Give every placeholder a value: the last key stands for those that are left over."""
    return {placeholder.name: key for placeholder, key in zip(KEYS, [*keys, *[keys[-1]] * len(KEYS)], strict=False)}


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
    now = timezone.now()
    for action in WITH_OPEN_PARENTS.rows(**fill(keys)) if keys else ():
        is_due = action.due_time is None or action.due_time <= now
        if action.state == Action.State.PENDING and is_due and not action.open_parent_count:
            found: Action = action
            return found
    return None


class Releases:
    """Asks about the children of those that ended, each no oftener than it may have changed.

    The first answer is how many parents have not ended; the next time is when so many more have. An action that waits
    for thousands would else be asked about thousands of times, each of which looks at thousands. For parents that end
    by somebody else's hand, of which nobody tells here, those that were held back are asked about once per
    `settings.POLL_INTERVAL` seconds.
    """

    def __init__(self) -> None:
        self.ended: list[int] = []
        self.candidates: dict[int, None] = {}  # An ordered set.
        self.awaited: dict[int, int] = {}
        self.held_back: set[int] = set()
        self.next_round = 0.0

    def __bool__(self) -> bool:
        """Whether there is anybody to ask about now."""
        return bool(self.ended or self.candidates or self.is_round_due)

    @property
    def is_round_due(self) -> bool:
        return bool(self.held_back) and time.monotonic() >= self.next_round

    def clear(self) -> None:
        self.ended.clear()
        self.candidates.clear()
        self.awaited.clear()
        self.held_back.clear()

    def note_end(self, key: int) -> None:
        self.ended.append(key)

    def consider(self, key: int) -> None:
        """Ask about an action that may have become ready by itself."""
        self.candidates[key] = None

    def find(self) -> list[Action]:
        """Return actions that became ready, some at least if there are any."""
        self.find_candidates()
        found: list[Action] = []
        while not found and self.candidates:
            found = self.ask()
        return found

    def find_candidates(self) -> None:
        while self.ended:
            parents, self.ended = self.ended[: len(KEYS)], self.ended[len(KEYS) :]
            for child, number in CHILDREN.rows(**fill(parents)):
                self.count_down(child, number)
        if self.is_round_due:
            self.next_round = time.monotonic() + settings.POLL_INTERVAL
            self.candidates.update(dict.fromkeys(self.held_back))
            self.held_back.clear()

    def count_down(self, child: int, number: int) -> None:
        left = self.awaited.pop(child, number) - number
        if left > 0:
            self.awaited[child] = left
            self.held_back.add(child)
        else:
            self.held_back.discard(child)
            self.candidates[child] = None

    def ask(self) -> list[Action]:
        keys = list(islice(self.candidates, len(KEYS)))
        for key in keys:
            del self.candidates[key]
        released = []
        for action in WITH_OPEN_PARENTS.rows(**fill(keys)):
            if action.open_parent_count:
                self.awaited[action.pk] = action.open_parent_count
            elif action.state in RELEASED:
                released.append(action)
        return released
