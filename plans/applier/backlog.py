"""Ready actions without a slot, kept so that they are not queried again and again."""

from collections import defaultdict, deque
from collections.abc import Set
from itertools import islice

from django.utils import timezone

from actions.models import Action
from plans.applier.readiness import KEYS, fill
from watcher_site.database.queries import Placeholder, Query

STILL_READY = Query(Action.objects.ready(Placeholder("now", Action._meta.get_field("due_time"))).filter(pk__in=KEYS))


class Backlog:
    """The ready actions of a plan whose queues have no slot, in the order in which they became ready.

    A plan may have any number of them: apart from a few rows only keys are kept, and read again when the queue has a
    slot.
    """

    def __init__(self) -> None:
        self.keys: dict[str, dict[int, None]] = {}  # Ordered sets.
        self.read: dict[str, deque[Action]] = defaultdict(deque)

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
        self.read.clear()

    def next(self, free_queues: Set[str]) -> Action | None:
        """Remove and return the first action of one of these queues, if there is one."""
        for queue in [queue for queue in self.keys if queue in free_queues]:
            if action := self.take(queue):
                return action
        return None

    def take(self, queue: str) -> Action | None:
        while queue in self.keys:
            if not self.read[queue]:
                self.read_on(queue)
                continue
            action = self.read[queue].popleft()
            if action.pk in self.keys[queue]:
                self.remove(queue, action.pk)
                return action
        return None

    def read_on(self, queue: str) -> None:
        """Read the next few, and forget those that somebody skipped or cancelled, or that began, meanwhile."""
        keys = list(islice(self.keys[queue], len(KEYS)))
        found = {action.pk: action for action in STILL_READY.rows(**fill(keys), now=timezone.now())}
        for key in keys:
            if key not in found:
                self.remove(queue, key)
        self.read[queue].extend(found[key] for key in keys if key in found)
