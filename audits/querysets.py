"""Questions to the tables of goals, strategies, audit templates and audits."""

from typing import Self
from uuid import UUID

from django.utils import timezone

from watcher_site.messages import cut
from watcher_site.models import Service
from watcher_site.records import RecordQuerySet
from watcher_site.storable import judge_text

# The digits of the greatest key that a table can hold.
LONGEST_KEY = 19


class NamedQuerySet(RecordQuerySet):
    def named(self, identifier: str) -> Self:
        """Leave the one with this database id, UUID or name, as the infra-optim API looks things up.

        Names are found whatever their letter case.
        """
        if judge_text(identifier):
            return self.none()
        if identifier.isascii() and identifier.isdigit() and len(identifier) <= LONGEST_KEY:
            return self.filter(pk=int(identifier))
        try:
            return self.filter(uuid=UUID(identifier))
        except ValueError:
            return self.filter(name__iexact=identifier)


class AuditQuerySet(NamedQuerySet):
    def waiting(self) -> Self:
        """Leave the ONESHOT ones that no decision engine has taken, oldest first."""
        return self.present().filter(state=self.model.State.PENDING, audit_type=self.model.Type.ONESHOT).order_by("pk")

    def orphaned(self) -> Self:
        """Leave the running ones whose decision engine is gone."""
        engines = Service.objects.active().values("pk")
        return self.present().filter(state=self.model.State.ONGOING).exclude(decision_engine__in=engines)

    def running_under(self, decision_engine: Service) -> Self:
        return self.present().filter(state=self.model.State.ONGOING, decision_engine=decision_engine)

    def adopt(self, decision_engine: Service) -> bool:
        """Take over the one orphaned audit that this queryset holds, and say whether this engine was first."""
        return bool(self.orphaned().update(decision_engine=decision_engine, hostname=decision_engine.host))

    def cancel_unfinished(self, message: str) -> int:
        """Cancel what waits and what runs, in one statement, and return how many audits that were."""
        return (
            self.present()
            .exclude(state__in=self.model.FINAL)
            .update(
                state=self.model.State.CANCELLED,
                status_message=cut(message),
                decision_engine=None,
                updated_at=timezone.now(),
            )
        )
