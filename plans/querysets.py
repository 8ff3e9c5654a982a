"""Questions to the table of action plans."""

from typing import Self

from watcher_site.models import Service
from watcher_site.records import RecordQuerySet


class ActionPlanQuerySet(RecordQuerySet):
    def waiting(self) -> Self:
        """Leave those that a person or an audit started and no applier has taken, oldest first."""
        return self.present().filter(state=self.model.State.PENDING).order_by("pk")

    def running(self) -> Self:
        return self.present().filter(state__in=[self.model.State.ONGOING, self.model.State.CANCELLING])

    def orphaned(self) -> Self:
        """Leave the running ones whose applier is gone: nobody's, or of one whose lease ran out."""
        return self.running().exclude(applier__in=Service.objects.active().values("pk"))

    def adopt(self, applier: Service) -> bool:
        """Take over the one orphaned plan that this queryset holds, and say whether this applier was first.

        The old owner stands in the WHERE clause: of several that ask at once, one wins.
        """
        return bool(self.orphaned().update(applier=applier, hostname=applier.host))
