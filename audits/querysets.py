"""Questions to the tables of goals, strategies, audit templates and audits."""

from typing import Self
from uuid import UUID

from watcher_site.models import Service
from watcher_site.records import RecordQuerySet


class NamedQuerySet(RecordQuerySet):
    def named(self, identifier: str) -> Self:
        """Leave the one with this database id, UUID or name, as the infra-optim API looks things up.

        Names are found whatever their letter case.
        """
        if identifier.isascii() and identifier.isdigit():
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
