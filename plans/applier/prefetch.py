"""Prefetch the children of running actions, so that completing one needs no query."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.conf import settings

from actions.models import Action, ActionParent
from actions.models.querysets import is_ready
from plans.applier.key_lists import KEYS, OTHER_KEYS, fill
from watcher_site.database.statements import Query

CHILDREN = Query(
    ActionParent.objects.filter(parent__pk__in=KEYS).order_by().values_list("parent", "child")[: len(KEYS) + 1]
)
# Chosen by their keys alone and joined with nothing: before a new plan has statistics, a join reads all of it.
ROWS = Query(
    Action.objects.present()
    .with_open_parents()
    .annotate(open_at_work=Action.objects.open_parent_count(parent__pk__in=OTHER_KEYS))
    .filter(pk__in=KEYS)
)


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
        """Read the children of a few actions at work, leaving out those of which they were read already."""
        parents = [key for key in at_work if key not in self.looked_at][: len(KEYS)]
        if not parents:
            return
        self.looked_at.update(dict.fromkeys(parents, time.monotonic()))
        families = CHILDREN.rows(**fill(parents))
        if families and len(families) <= len(KEYS):
            self.read(parents, families)

    def read(self, parents: Sequence[int], families: Sequence[tuple[int, int]]) -> None:
        """Read the children of these parents that wait for these alone, given all of them, each beside its parent."""
        awaited: dict[int, set[int]] = defaultdict(set)
        for parent, child in families:
            awaited[child].add(parent)
            self.children.setdefault(parent, []).append(child)
        for row in ROWS.rows(**fill([*awaited]), **fill(parents, OTHER_KEYS)):
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
            self.forget(*children or ())
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
