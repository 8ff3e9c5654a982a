"""Querysets of goals, strategies, audit templates and audits."""

from datetime import datetime
from typing import Self
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from watcher_site.database.records import RecordQuerySet
from watcher_site.database.text import UNSTORABLE
from watcher_site.messages import cut
from watcher_site.models import Service
from watcher_site.outbox.writing import NotifiesUpdates
from watcher_site.validation import LONGEST_NAME

# The number of digits of the greatest key.
LONGEST_KEY = 19


class NamedQuerySet(RecordQuerySet):
    def named(self, identifier: str) -> Self:
        """Select by database id, UUID or name, ignoring the case of names, as in Watcher's API."""
        if UNSTORABLE.search(identifier) or len(identifier) > LONGEST_NAME:
            return self.none()
        if identifier.isascii() and identifier.isdigit() and len(identifier) <= LONGEST_KEY:
            return self.filter(pk=int(identifier))
        try:
            return self.filter(uuid=UUID(identifier))
        except ValueError:
            return self.filter(name__iexact=identifier)


class AuditQuerySet(NotifiesUpdates, NamedQuerySet):
    def waiting(self, now: datetime) -> Self:
        """Select the audits that a decision engine should run now.

        These are new ONESHOT audits, EVENT audits whose webhook was called, due CONTINUOUS audits, and audits whose
        decision engine was lost during their run.
        """
        states, types = self.model.State, self.model.Type
        begins = Q(state=states.PENDING) & (Q(audit_type=types.ONESHOT) | Q(next_run_time__lte=now))
        orphaned = Q(state=states.ONGOING) & ~Q(audit_type=types.CONTINUOUS)
        continues = Q(state=states.ONGOING, audit_type=types.CONTINUOUS, next_run_time__lte=now)
        return self.unclaimed().filter(begins | orphaned | continues).exclude(self.ended_condition(now))

    def unclaimed(self) -> Self:
        """Select the audits that no living decision engine runs."""
        return self.present().exclude(decision_engine__in=Service.objects.active().values("pk"))

    def ended_condition(self, now: datetime) -> Q:
        return Q(audit_type=self.model.Type.CONTINUOUS, end_time__lte=now)

    def oldest_first(self) -> Self:
        """Order by the time since each is due, regardless of its type, so that none starves."""
        return self.order_by(Coalesce("next_run_time", "created_at"), "pk")

    def claim(self, decision_engine: Service, now: datetime) -> bool:
        """Claim the audit of this queryset for a decision engine, and return whether this succeeded.

        The conditions for a run are in the WHERE clause, so that only one of several engines claims the audit.
        """
        return bool(
            self.waiting(now).update(
                state=self.model.State.ONGOING,
                decision_engine=decision_engine,
                hostname=decision_engine.host,
                updated_at=timezone.now(),
            )
        )

    def running_under(self, decision_engine: Service) -> Self:
        return self.present().filter(state=self.model.State.ONGOING, decision_engine=decision_engine)

    def end_series(self, now: datetime) -> int:
        """End the CONTINUOUS audits whose end time has passed, except for those that are running, and return their
        number."""
        states = self.model.State
        ended = self.unclaimed().filter(self.ended_condition(now), state__in=[states.PENDING, states.ONGOING])
        return ended.update(
            state=states.SUCCEEDED, decision_engine=None, next_run_time=None, updated_at=timezone.now()
        )

    def fail_silently(self, reason: str) -> int:
        """End these audits as FAILED, even if their rows are invalid, without notifications."""
        return QuerySet.update(
            self,
            state=self.model.State.FAILED,
            status_message=cut(reason),
            decision_engine=None,
            next_run_time=None,
            updated_at=timezone.now(),
        )

    def cancel_unfinished(self, message: str) -> int:
        """Cancel the waiting and running audits, in one statement, and return their number."""
        return (
            self.present()
            .exclude(state__in=self.model.FINAL)
            .update(
                state=self.model.State.CANCELLED,
                status_message=cut(message),
                decision_engine=None,
                next_run_time=None,
                updated_at=timezone.now(),
            )
        )
