"""The ready actions of a plan that wait for a slot."""

from collections import defaultdict, deque
from collections.abc import Set
from itertools import islice

from django.utils import timezone

from actions.models import Action
from plans.applier.readiness import KEYS, bind_keys
from watcher_site.database.queries import Placeholder, Query

STILL_READY = Query(Action.objects.ready(Placeholder("now", Action._meta.get_field("due_time"))).filter(pk__in=KEYS))


class Backlog:
    """The ready actions of a plan whose queues have no free slot, in the order in which they became ready.

    Only keys are kept, and a few rows: the other rows are read when their queue has a free slot.
    """

    def __init__(self) -> None:
        self.keys: dict[str, dict[int, None]] = {}  # Ordered sets.
        self.rows: dict[str, deque[Action]] = defaultdict(deque)

    def __bool__(self) -> bool:
        return bool(self.keys)

    @property
    def queues(self) -> Set[str]:
        return self.keys.keys()

    def add(self, queue: str, action: Action) -> None:
        self.keys.setdefault(queue, {})[action.pk] = None

    def discard(self, key: int) -> None:
        for queue in list(self.keys):
            self.remove(queue, key)

    def remove(self, queue: str, key: int) -> None:
        self.keys[queue].pop(key, None)
        if not self.keys[queue]:
            del self.keys[queue]

    def clear(self) -> None:
        self.keys.clear()
        self.rows.clear()

    def next(self, free_queues: Set[str]) -> Action | None:
        """Remove and return the first action of one of these queues, if there is one."""
        for queue in [queue for queue in self.keys if queue in free_queues]:
            if action := self.pop(queue):
                return action
        return None

    def pop(self, queue: str) -> Action | None:
        while queue in self.keys:
            if not self.rows[queue]:
                self.read_rows(queue)
                continue
            action = self.rows[queue].popleft()
            if action.pk in self.keys[queue]:
                self.remove(queue, action.pk)
                return action
        return None

    def read_rows(self, queue: str) -> None:
        """Read the next few rows of a queue, and discard actions that are not ready any more."""
        keys = list(islice(self.keys[queue], len(KEYS)))
        found = {action.pk: action for action in STILL_READY.rows(**bind_keys(keys), now=timezone.now())}
        for key in keys:
            if key not in found:
                self.remove(queue, key)
        self.rows[queue].extend(found[key] for key in keys if key in found)
