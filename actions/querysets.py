"""Questions to the table of actions. The table is the queue: readiness is a WHERE clause."""

from typing import Self

from django.db.models import Exists, OuterRef
from django.utils import timezone

from watcher_site.messages import cut
from watcher_site.records import RecordQuerySet


class ActionQuerySet(RecordQuerySet):
    def pending(self) -> Self:
        return self.present().filter(state=self.model.State.PENDING)

    def unfinished(self) -> Self:
        return self.present().exclude(state__in=self.model.FINAL)

    def ready(self) -> Self:
        """Leave the pending ones whose parents have all finished, whatever became of them."""
        open_parents = self.model.objects.filter(child_links__child=OuterRef("pk")).unfinished()
        return self.pending().exclude(Exists(open_parents))

    def cancel_pending(self, message: str) -> int:
        """Cancel what has not begun, in one statement, and return how many that were."""
        return self.pending().update(
            state=self.model.State.CANCELLED, status_message=cut(message), updated_at=timezone.now()
        )
