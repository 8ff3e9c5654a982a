"""The last periodic purge, and the decision engine that is purging."""

from datetime import timedelta
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils import timezone

from watcher_site.models import ExclusiveTask


class PeriodicPurge(ExclusiveTask):
    """The single row of a site whose runs are the periodic purges.

    ``ended_at`` is the end of the last one or, before the first one, the creation of the row: the first purge begins
    after an interval.
    """

    ended_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"ended at {self.ended_at}"

    @classmethod
    def claim(cls, interval: timedelta) -> UUID | None:
        """Return the key of a new purge, unless another one is in progress or ended within the interval."""
        return cls.claim_if(Q(ended_at__lte=timezone.now() - interval))

    @classmethod
    def end(cls, holder: UUID) -> None:
        cls.release(holder, ended_at=timezone.now())
