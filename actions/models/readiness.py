"""Readiness: an action may begin if it is PENDING, its parents have ended, and its time has come.

The table is the queue, so these conditions stand here twice: as expressions of queries, and for rows that were read.
"""

from collections.abc import Set
from typing import Any, Self

from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from watcher_site.database.records import RecordQuerySet

PENDING = "PENDING"
PENDING_ONLY = frozenset({PENDING})


def due_condition(now: Any = None) -> Q:
    """Return the condition of actions that are not deferred to a later time."""
    return Q(due_time=None) | Q(due_time__lte=now or timezone.now())


def is_due(action: Any) -> bool:
    """Return whether an action is not deferred to a later time."""
    return action.due_time is None or action.due_time <= timezone.now()


def is_ready(action: Any, ended: int = 0, states: Set[str] = PENDING_ONLY) -> bool:
    """Return whether an action, read by `ReadinessQuerySet.with_open_parents`, may begin.

    Args:
        ended: how many of its open parents have ended, or will have.
        states: the states that count as PENDING does.
    """
    return action.state in states and action.open_parent_count <= ended and is_due(action)


class ReadinessQuerySet(RecordQuerySet):
    def unfinished(self) -> Self:
        return self.present().exclude(state__in=self.model.FINAL)

    def pending(self) -> Self:
        return self.present().filter(state=PENDING)

    def links_to_open_parents(self) -> Any:
        """Return the links of an action of an outer query to those that it waits for and that have not finished."""
        links = self.model._meta.get_field("parent_links").related_model.objects
        # Each parent is looked up by its key: the statistics of a moment when nothing was open mislead a join.
        parent = Subquery(self.model.objects.filter(pk=OuterRef("parent")).unfinished().values("pk"))
        return links.filter(child=OuterRef("pk")).alias(open_parent=parent).filter(open_parent__isnull=False)

    def open_parents(self) -> Exists:
        """Return whether an action of an outer query waits for one that has not finished."""
        return Exists(self.links_to_open_parents())

    def open_parent_count(self, **chosen: Any) -> Coalesce:
        """Return for how many, of those that are chosen by the columns of links, an action of an outer query waits."""
        links = self.links_to_open_parents().filter(**chosen).order_by()
        return Coalesce(Subquery(links.values("child").annotate(number=Count("pk")).values("number")), 0)

    def with_open_parents(self) -> Self:
        """Add ``open_parent_count``: how many each waits for that have not finished."""
        return self.annotate(open_parent_count=self.open_parent_count())

    def ready_condition(self, now: Any = None) -> Q:
        """Return the condition of actions that may begin."""
        return Q(state=PENDING) & ~self.open_parents() & due_condition(now)

    def ready(self, now: Any = None) -> Self:
        """Select the actions that may begin."""
        return self.present().filter(self.ready_condition(now))
