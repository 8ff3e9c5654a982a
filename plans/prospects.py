"""What becomes ready as actions that are at work end, read while they are: their ends then ask nothing."""

import time
from collections import defaultdict
from collections.abc import Iterable

from django.conf import settings
from django.db.models import OuterRef, Subquery

from actions.models import Action, ActionParent
from plans.keys import KEYS, fill
from watcher_site.statements import Query

# Links that are read at once: of larger families is asked when a parent has ended.
MOST = 64

CHILDREN = Query(
    ActionParent.objects.filter(parent__pk__in=KEYS).order_by().values_list("parent", "child")[: len(KEYS) + 1]
)
# Each parent is looked up by its key, as in `ActionQuerySet.links_to_open_parents`.
OPEN_LINKS = Query(
    ActionParent.objects.filter(child__pk__in=KEYS, child__deleted_at=None)
    .alias(open_parent=Subquery(Action.objects.filter(pk=OuterRef("parent")).unfinished().values("pk")))
    .filter(open_parent__isnull=False)
    .select_related("child")
    .order_by("child")[:MOST]
)


class Prospects:
    """The children of a few actions at work, and for which actions each of them waits.

    What is held here is how the table was at one moment, a short while ago: whoever begins one of these actions finds
    its row as it was read, or begins nothing. A child waits for those that had not ended at that moment, so that the
    report of an end which the table knew already does not count.
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
            self.read(families)

    def read(self, families: list[tuple[int, int]]) -> None:
        """Read for which others these children wait, given all children of some parents, each beside its parent."""
        links = OPEN_LINKS.rows(**fill([child for _, child in families]))
        if len(links) == MOST:
            return
        open_parents: dict[int, set[int]] = defaultdict(set)
        for link in links:
            open_parents[link.child_id].add(link.parent_id)
            if link.child.state == Action.State.PENDING and link.child.due_time is None:
                self.rows[link.child_id] = link.child
        self.open_parents.update(open_parents)
        for parent, child in families:
            self.children.setdefault(parent, []).append(child)

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
