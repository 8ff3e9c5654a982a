"""Changes of many rows at once, of models whose changes notifications tell of."""

from typing import Any

from django.db import transaction

from watcher_site.outbox.kinds import DELETE
from watcher_site.outbox.listeners import listeners
from watcher_site.outbox.writing import announce, announce_changes


class NotifiesUpdates:
    """A mixin of querysets: an update of ``updated_at`` writes a notification for each row, if it has receivers."""

    def update(self: Any, **columns: Any) -> int:
        if "updated_at" not in columns or not listeners.any:
            return super().update(**columns)  # type: ignore[misc]
        with transaction.atomic():
            # Locked, so that the old states are what the change finds, and the rows those that it changes.
            rows = self.order_by("pk").select_for_update(no_key=True)
            states = list(rows.values_list("pk", "state"))
            keys = [key for key, _ in states]
            chosen = self.model.objects.filter(pk__in=keys)
            number: int = super(NotifiesUpdates, chosen).update(**columns)  # type: ignore[misc]
            announce_changes(self.model.notified_as, states, columns.get("state"))
            if columns.get("deleted_at"):
                announce(self.model.notified_as, [DELETE], keys)
        return number
