"""Audits, their states, and the transitions by runs and users."""

from datetime import datetime, timedelta
from typing import Any

from django.db import models, transaction
from django.utils import timezone
from django_fsm import FSMField, transition

from audits import messages
from audits.messages import (
    AUDIT_CANCELLED_BECAUSE,
    AUDIT_CANCELLED_BY_USER,
    AUDIT_SUSPENDED_BY_USER,
    RUN,
    RUN_AT,
    RUN_FAILED_BECAUSE,
    RUN_OMITTED_BECAUSE,
    RUN_WAITS_BECAUSE,
)
from audits.models.catalogue import Goal, Named, Strategy, unique_name
from audits.models.querysets import AuditQuerySet
from audits.models.schedule import INTERVAL_LENGTH, Schedule
from watcher_site.database.records import NullsFirst
from watcher_site.history import entries_of, record
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut
from watcher_site.models import Service
from watcher_site.refusals import Invalid
from watcher_site.state_machine import StatefulModel
from watcher_site.validation import REQUEST_ID_LENGTH

# The time by which the run of an EVENT audit is deferred while an action plan is ongoing.
POSTPONEMENT = timedelta(seconds=10)


def is_continuous(audit: Any) -> bool:
    return bool(audit.audit_type == Audit.Type.CONTINUOUS)


def is_event(audit: Any) -> bool:
    return bool(audit.audit_type == Audit.Type.EVENT)


class Audit(StatefulModel, Named):
    """A request to run a strategy, once or repeatedly, with the states of docs/compatibility.md, "Audit states"."""

    class Type(models.TextChoices):
        ONESHOT = "ONESHOT"
        CONTINUOUS = "CONTINUOUS"
        EVENT = "EVENT"

    class State(models.TextChoices):
        PENDING = "PENDING"
        ONGOING = "ONGOING"
        SUCCEEDED = "SUCCEEDED"
        FAILED = "FAILED"
        CANCELLED = "CANCELLED"
        SUSPENDED = "SUSPENDED"

    DELETABLE = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SUSPENDED})
    FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})

    notified_as = "audit"

    # A decision engine whose lease expired no longer owns the audit, and its writes fail.
    guard_fields = ["state", "decision_engine"]
    transition_fields = ["state", "status_message", "decision_engine", "next_run_time", "request_id"]

    audit_type = models.CharField(max_length=20, choices=Type)
    state = FSMField(max_length=20, choices=State, default=State.PENDING, protected=True, editable=False)
    status_message = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True)
    goal = models.ForeignKey(Goal, models.CASCADE, related_name="audits")
    strategy = models.ForeignKey(Strategy, models.SET_NULL, null=True, related_name="audits")
    parameters = models.JSONField(default=dict)
    interval = models.CharField(
        max_length=INTERVAL_LENGTH, null=True, help_text="seconds, or a cron expression in UTC"
    )
    scope = models.JSONField(default=list)
    auto_trigger = models.BooleanField(default=False)
    force = models.BooleanField(default=False, help_text="whether the audit runs while an action plan is ONGOING")
    next_run_time = models.DateTimeField(null=True)
    start_time = models.DateTimeField(null=True)
    end_time = models.DateTimeField(null=True)
    hostname = models.CharField(max_length=255, null=True, help_text="host of the last decision engine of the audit")
    request_id = models.CharField(
        max_length=REQUEST_ID_LENGTH,
        default="",
        db_default="",
        editable=False,
        help_text="id of the request that created the audit or triggered its last run; empty: none did",
    )
    decision_engine = models.ForeignKey(Service, models.SET_NULL, null=True, related_name="audits")

    objects = AuditQuerySet.as_manager()

    class Meta:
        permissions = [("trigger_audit", "Can trigger audit")]
        indexes = [
            # The decision engine selects waiting and running audits by state; the lists of users sort by it.
            models.Index("state", "id", name="audit_state"),
            models.Index("name", "id", name="audit_name_sort"),
            models.Index("audit_type", "id", name="audit_type"),
            models.Index("created_at", "id", name="audit_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="audit_updated_at"),
            models.Index(NullsFirst("next_run_time"), "id", name="audit_next_run_time"),
        ]
        constraints = [unique_name("audit_name")]

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.interval or "", self.start_time, self.end_time)

    @property
    def planned_run(self) -> datetime | None:
        """The time of the next run, or None if the state of the audit does not allow one."""
        return self.next_run_time if self.state in {self.State.PENDING, self.State.ONGOING} else None

    # `AuditQuerySet.claim` begins a run.

    @transition(field=state, source=State.ONGOING, target=State.SUCCEEDED)
    def succeed(self, message: str | None = None) -> None:
        """End a run that proposed a plan. Only a call of the webhook begins another run."""
        self.status_message, self.decision_engine, self.next_run_time = message and cut(message), None, None

    @transition(field=state, source=State.ONGOING, target=State.FAILED)
    def fail(self, reason: str) -> None:
        self.status_message, self.decision_engine, self.next_run_time = cut(reason), None, None

    @transition(field=state, source=State.ONGOING, target=State.ONGOING, conditions=[is_continuous])
    def await_run(self, next_run_time: datetime | None, message: str | None = None) -> None:
        """Wait for the next run of the series. Without one, the series ends at its `end_time`."""
        self.next_run_time, self.decision_engine = next_run_time, None
        self.status_message = message and cut(message)

    @transition(field=state, source=State.ONGOING, target=State.PENDING, conditions=[is_event])
    def postpone(self, until: datetime, message: str) -> None:
        """Defer the run that the webhook requested."""
        self.next_run_time, self.decision_engine, self.status_message = until, None, cut(message)

    @transition(
        field=state,
        source=[State.PENDING, State.SUCCEEDED],
        target=State.PENDING,
        conditions=[is_event],
    )
    def trigger(self, now: datetime, request_id: str = "") -> None:
        """Request a run that begins after this time: the webhook was called, by the request with this id."""
        self.next_run_time, self.status_message, self.request_id = now, None, request_id

    @transition(field=state, source=[State.PENDING, State.ONGOING], target=State.CANCELLED)
    def cancel(self, message: str) -> None:
        self.status_message, self.decision_engine, self.next_run_time = cut(message), None, None

    @transition(field=state, source=State.ONGOING, target=State.SUSPENDED, conditions=[is_continuous])
    def suspend(self, message: str) -> None:
        """Suspend the series of runs. A run in progress is discarded."""
        self.status_message, self.decision_engine = cut(message), None

    @transition(field=state, source=State.SUSPENDED, target=State.ONGOING)
    def resume(self, now: datetime) -> None:
        """Resume the series of runs at its original times.

        Raises:
            Invalid: there is no run before the end of the series.
        """
        self.next_run_time, self.status_message = self.schedule.following(self.next_run_time or now, now), None
        if self.next_run_time is None:
            raise Invalid(messages.NO_RUN_TO_RESUME.text)

    # The operations of users, for API, console and commands. Clients match the message of a cancellation.

    def abandon(self) -> None:
        """Cancel the audit for a user. A run in progress is discarded.

        Raises:
            NotFound: the audit was deleted meanwhile.
            TransitionNotAllowed, ConcurrentTransition: the audit is final or suspended.
        """
        self.cancel(AUDIT_CANCELLED_BY_USER.text)
        self.save_requested_state(*entries_of("audit.cancel", self))

    def suspend_series(self) -> None:
        """Suspend the audit for a user.

        Raises:
            NotFound: the audit was deleted meanwhile.
            TransitionNotAllowed, ConcurrentTransition: the audit is not CONTINUOUS, or not ONGOING.
        """
        self.suspend(AUDIT_SUSPENDED_BY_USER.text)
        self.save_requested_state(*entries_of("audit.suspend", self))

    def resume_series(self) -> None:
        """Resume the audit for a user.

        Raises:
            NotFound: the audit was deleted meanwhile.
            TransitionNotAllowed, ConcurrentTransition: the audit is not SUSPENDED.
            Invalid: there is no run before the end of the series.
        """
        self.resume(timezone.now())
        self.save_requested_state(*entries_of("audit.resume", self))

    def end_run(self, now: datetime, message: str | None = None) -> None:
        """End a run that proposed a plan, or has a message with the reason for none. Missed runs are omitted."""
        if not is_continuous(self):
            self.succeed()
            return
        following = self.schedule.following(self.next_run_time or now, now)
        if following or self.end_time:
            self.await_run(following, message)
        else:
            self.succeed(message)

    def fail_run(self, now: datetime, reason: str) -> None:
        """End a run that failed. A series continues, unless no further run is possible."""
        try:
            continues = is_continuous(self) and (self.schedule.following(now, now) or self.end_time)
        except Invalid as problem:
            continues, reason = False, str(problem)
        if continues:
            self.end_run(now, RUN_FAILED_BECAUSE.fill(run=self.describe_run(), reason=reason))
        else:
            self.fail(reason)

    def skip_run(self, now: datetime, obstacle: str) -> None:
        """End a run that cannot begin: a series omits it, an EVENT audit defers it, a ONESHOT audit is cancelled."""
        if is_continuous(self):
            self.end_run(now, RUN_OMITTED_BECAUSE.fill(run=self.describe_run(), obstacle=obstacle))
        elif is_event(self):
            self.postpone(now + POSTPONEMENT, RUN_WAITS_BECAUSE.fill(obstacle=obstacle))
        else:
            self.cancel(AUDIT_CANCELLED_BECAUSE.fill(obstacle=obstacle))

    def describe_run(self) -> str:
        return RUN_AT.fill(time=f"{self.next_run_time:%Y-%m-%d %H:%M:%S}") if self.next_run_time else RUN.text

    @transaction.atomic
    def remove(self) -> None:
        """Mark the audit as deleted. It can be shown on request until it is purged. Its plans are kept.

        Raises:
            Invalid: the audit is waiting or running.
            NotFound: the audit was already deleted.
        """
        if not type(self).objects.filter(pk=self.pk, state__in=self.DELETABLE).soft_delete():
            raise self.undeletable()
        record("audit.delete", self)
