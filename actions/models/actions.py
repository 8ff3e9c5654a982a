"""An action of a plan: its states, its dependencies, and the events of its phases."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django_fsm import FSMField, transition

from actions.messages import (
    DEFERRED_BECAUSE,
    FAILED_BECAUSE,
    NOTED,
    SKIPPED_ALONE,
    SKIPPED_BECAUSE,
    SKIPPED_BY_USER_BECAUSE,
    SKIPPED_EARLIER,
    SKIPPED_EARLIER_BECAUSE,
)
from actions.models.exclusions import Exclusion
from actions.models.instance_actions import InstanceAction
from actions.models.naming import FilledCharField, generated_name, target, type_and_resource
from actions.models.querysets import ActionQuerySet
from watcher_site.database.records import NullsFirst
from watcher_site.database.text import make_storable
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut, without_controls
from watcher_site.models import Service
from watcher_site.monitoring.metrics import actions_seconds
from watcher_site.state_machine import StatefulModel

__all__ = ["Action", "ActionParent", "InstanceAction"]

SKIPPED_BY_USER = SKIPPED_ALONE.text
SKIPPED_AUTOMATICALLY = SKIPPED_BECAUSE.opening
FAILED_IN = FAILED_BECAUSE.opening
# The names in messages of phases whose names are used only in code.
PHASE_LABELS = {"go_on": "completion", "wait": "waiting"}
NOT_EXECUTED = "Action was not executed:"
# The pauses of an action that waits for a lock grow to 16 times the first one.
MOST_DOUBLINGS = 4
# A user's reason is never cut, so it must fit after the longest prefix.
REASON_LENGTH = STATUS_MESSAGE_LENGTH - len(SKIPPED_BY_USER_BECAUSE.fill(reason=""))


def is_skipped_by_a_person(action: Any) -> bool:
    return action.skipped_by is not None


def is_excluded(action: Any) -> bool:
    return action.exclusion_id is not None


def may_be_restored(action: Any) -> bool:
    return is_skipped_by_a_person(action) or is_excluded(action)


def waits_for_derived(action: Any) -> bool:
    return bool(action.has_derived)


def is_ahead(moment: datetime | None) -> bool:
    return moment is not None and moment > timezone.now()


class Action(StatefulModel):
    """A step of an action plan, with the states of docs/compatibility.md, "Action states"."""

    class State(models.TextChoices):
        PENDING = "PENDING"
        ONGOING = "ONGOING"
        SUSPENDED = "SUSPENDED"
        CANCELLING = "CANCELLING"
        SUCCEEDED = "SUCCEEDED"
        FAILED = "FAILED"
        SKIPPED = "SKIPPED"
        CANCELLED = "CANCELLED"

    class Signal(models.TextChoices):
        """A signal from a user to an action (docs/compatibility.md, "Signals")."""

        CANCEL = "CANCEL"
        SUSPEND = "SUSPEND"
        RESUME = "RESUME"

    CARRIED_OUT = frozenset({State.SUCCEEDED, State.FAILED})
    UNDER_WAY = frozenset({State.ONGOING, State.CANCELLING})
    BEGUN = UNDER_WAY | {State.SUSPENDED}
    FINAL = CARRIED_OUT | {State.SKIPPED, State.CANCELLED}

    notified_as = "action"

    # The writes of a worker whose lease has expired fail: the action has another attempt or owner.
    guard_fields = ["state", "attempt", "owner"]
    transition_fields = [
        *("state", "status_message", "skipped_by", "reason", "exclusion", "attempt"),
        *("owner", "start_time", "end_time", "retries", "due_time", "has_derived", "control", "losses"),
    ]

    name = FilledCharField("make_name", max_length=255, default="", db_default="")
    target = FilledCharField("make_target", max_length=255, null=True, help_text="the changed object, usually a UUID")
    outputs = models.JSONField(
        default=dict, db_default={}, editable=False, help_text="the result, or the error if the action failed"
    )
    data = models.JSONField(
        default=dict, db_default={}, editable=False, help_text="data that the action type stores between attempts"
    )
    action_plan = models.ForeignKey("plans.ActionPlan", models.CASCADE, related_name="actions")
    action_type = models.CharField(max_length=255)
    input_parameters = models.JSONField(default=dict)
    state = FSMField(max_length=20, choices=State, default=State.PENDING, protected=True, editable=False)
    status_message = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True)
    control = models.CharField(
        max_length=10,
        choices=Signal,
        null=True,
        editable=False,
        help_text="the signal that the action has not processed yet",
    )
    skipped_by = models.CharField(max_length=255, null=True, help_text="the name of the user who skipped the action")
    reason = models.CharField(
        max_length=REASON_LENGTH, default="", db_default="", help_text="the reason for the skip that a user gave"
    )
    exclusion = models.ForeignKey(
        Exclusion,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="actions",
        db_index=False,
        help_text="the rule that skipped the action",
    )
    attempt = models.PositiveIntegerField(default=0, editable=False)
    losses = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="number of processes that died while they executed the action",
    )
    # There is no constraint: the database would lock the applier's row at each beginning. Rows of services that own
    # actions are never deleted.
    owner = models.ForeignKey(
        Service,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="actions",
        db_constraint=False,
        db_index=False,
        help_text="the applier or worker that executes the action",
    )
    timeout = models.PositiveIntegerField(null=True, help_text="seconds; null or 0: the default of the site")
    interval = models.PositiveIntegerField(
        default=0, db_default=0, help_text="seconds between repetitions; 0: the action is not repeated"
    )
    start_time = models.DateTimeField(null=True, editable=False, help_text="time at which the last execution began")
    end_time = models.DateTimeField(null=True, editable=False, help_text="time at which the last execution ended")
    retries = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="number of deferrals that count as retries"
    )
    due_time = models.DateTimeField(null=True, editable=False, help_text="earliest time of the next execution")
    waits_until = models.DateTimeField(
        null=True, editable=False, help_text="end of the wait for derived actions, for a lock or for a known time"
    )
    lock_holder = models.UUIDField(
        null=True, editable=False, help_text="UUID of the action whose lock this action waits for"
    )
    derived_from = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        editable=False,
        related_name="derived",
        db_index=False,
        help_text="the action that created this one while it ran, or will adopt this planned one, and waits for it",
    )
    has_derived = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="whether the action has derived actions, and continues after their end",
    )
    has_planned = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="whether the plan was created with actions that this action will derive",
    )
    is_planned = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="whether the plan was created with this action, which another action will derive",
    )
    initial_data = models.JSONField(null=True, editable=False, help_text="data of the proposal; null: none")
    parents = models.ManyToManyField(
        "self",
        symmetrical=False,
        related_name="children",
        through="ActionParent",
        through_fields=("child", "parent"),
    )

    objects = ActionQuerySet.as_manager()

    class Meta:
        permissions = [("skip_action", "Can skip action"), ("signal_action", "Can signal action")]
        indexes = [
            # The applier queries a plan's pending and unfinished actions; lists filter by plan.
            models.Index("action_plan", "state", "id", name="action_plan_state"),
            # The sort keys of the API. Nulls come first, as in OpenStack's servers.
            # Counts by state are index-only scans. The index is not partial: without statistics, PostgreSQL prefers a
            # partial index to the primary key.
            models.Index("state", "id", "deleted_at", name="action_state_key"),
            models.Index("action_type", "id", name="action_type"),
            models.Index("created_at", "id", name="action_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="action_updated_at"),
            models.Index("name", "id", name="action_name"),
            models.Index(NullsFirst("target"), "id", name="action_target"),
            # Services are kept while they own actions.
            models.Index("owner", condition=Q(owner__isnull=False), name="action_owner"),
            # The page of a rule lists the actions that it skipped.
            models.Index("exclusion", "id", condition=Q(exclusion__isnull=False), name="action_exclusion"),
            # The applier queries its actions that exceed their waiting time.
            models.Index(
                "waits_until",
                condition=Q(state="PENDING", waits_until__isnull=False),
                name="action_waits_until",
            ),
            # An action that ends wakes the actions that wait for its lock.
            models.Index("lock_holder", condition=Q(lock_holder__isnull=False), name="action_lock_holder"),
            # The applier reads the derived actions of an action page by page.
            models.Index("derived_from", "id", condition=Q(derived_from__isnull=False), name="action_derived_from"),
        ]

    def count_change(self, before: str, state: str) -> None:
        super().count_change(before, state)
        if state in self.FINAL and before in self.BEGUN and self.start_time and self.end_time:
            seconds = (self.end_time - self.start_time).total_seconds()
            actions_seconds.labels(self.action_type, state).observe(seconds)

    def __str__(self) -> str:
        return f"{self.action_type} {self.uuid}"

    @property
    def called(self) -> str:
        """Return the action's name for users: its type and the name of its object."""
        return type_and_resource(self.action_type, self.input_parameters)

    @property
    def known_names(self) -> dict[str, str]:
        """Return the name of the action and, if the parameters contain it, of its object, by UUID."""
        uuid, name = self.input_parameters.get("resource_id"), self.input_parameters.get("resource_name")
        return {str(self.uuid): self.called} | ({str(uuid): str(name)} if uuid and name else {})

    def make_name(self) -> str:
        return generated_name(self.action_type, self.uuid)

    def make_target(self) -> str | None:
        return target(self.action_type, self.input_parameters)

    @property
    def seconds_allowed(self) -> int:
        """Return the timeout of an execution in seconds, which includes waiting for derived actions."""
        return self.timeout or settings.DEFAULT_ACTION_TIMEOUT

    @property
    def time_allowed(self) -> timedelta:
        return timedelta(seconds=self.seconds_allowed)

    def may_wait_for(self, until: datetime | None, lock_holder: UUID | None = None) -> bool:
        """Return whether a retry until a time or for a lock does not count as one. `waits_until` limits this."""
        is_known = lock_holder is not None or is_ahead(until)
        return is_known and (self.waits_until is None or is_ahead(self.waits_until))

    @property
    def touched_fields(self) -> list[str]:
        """Return the columns to write; outputs and waits only if they may have changed, which is rare."""
        columns = [*self.transition_fields]
        if self.outputs or self.retries:
            columns.append("outputs")
        if self.waits_until:
            # A lock holder is stored only together with the end of the wait.
            columns += ["waits_until", "lock_holder"]
        return columns

    def take(self, owner: int | None) -> None:
        """Start a new attempt, owned by the service with this primary key."""
        self.attempt += 1
        self.owner_id, self.end_time = owner, None
        # An action that continues after its derived actions keeps its start time.
        self.start_time = (self.has_derived and self.start_time) or timezone.now()
        self.status_message = self.due_time = self.lock_holder = None

    def release(self) -> None:
        """Clear the owner of the action. An action that never began has neither a start nor an end time.

        A pending signal of an action that has ended is cleared, too.
        """
        self.owner_id = self.control = None
        self.end_time = self.start_time and timezone.now()

    @property
    def is_to_derive(self) -> bool:
        """Return whether this action will derive planned actions, which wait for it."""
        return self.has_planned and not self.has_derived

    @transition(field=state, source=State.PENDING, target=State.SKIPPED)
    def skip(self, by: str, reason: str = "") -> None:
        """Skip the action for a user. The caller holds the plan's row and has checked `actions.models.refusals`."""
        self.skipped_by = by
        self.comment(reason)

    @transition(field=state, source=State.PENDING, target=State.SKIPPED)
    def skip_as_earlier(self, by: str, reason: str) -> None:
        """Skip the action, as a user did in the earlier plan that its plan continues."""
        self.skipped_by, self.reason = by, reason
        message = SKIPPED_EARLIER_BECAUSE if reason else SKIPPED_EARLIER
        self.status_message = cut(message.fill(user=by, reason=reason))

    @property
    def is_origin_skipped(self) -> bool:
        """Return whether the action that will derive this one is skipped."""
        return self.derived_from is not None and self.derived_from.state == self.State.SKIPPED

    @property
    def finding(self) -> str:
        """Return the message of a SKIPPED action without the user's reason, as clients match it."""
        if self.skipped_by is not None:
            return SKIPPED_BY_USER
        return (self.status_message or SKIPPED_AUTOMATICALLY).removesuffix(NOTED.fill(finding="", note=self.reason))

    def comment(self, reason: str) -> None:
        """Append a user's reason, of at most `REASON_LENGTH` characters, to the message of a SKIPPED action.

        The message of an action that was skipped automatically stays, and does not become "skipped by user". It is cut
        if the reason needs the space; its event contains the full message.
        """
        if not reason:
            self.status_message = self.finding
        elif self.skipped_by is not None:
            self.status_message = SKIPPED_BY_USER_BECAUSE.fill(reason=reason)
        else:
            free = STATUS_MESSAGE_LENGTH - len(NOTED.fill(finding="", note=reason))
            self.status_message = NOTED.fill(finding=cut(self.finding, free), note=reason)
        self.reason = reason

    @transition(field=state, source=State.SKIPPED, target=State.PENDING, conditions=[may_be_restored])
    def restore(self) -> None:
        """Restore an action that a user or a former rule skipped. The caller holds the plan's row."""
        self.skipped_by, self.reason, self.status_message, self.exclusion = None, "", None, None

    @transition(field=state, source=State.PENDING, target=State.SKIPPED)
    def skip_automatically(self, finding: str) -> None:
        """Skip the action because its pre_condition found that it no longer applies."""
        self.control = None
        self.status_message = cut(SKIPPED_BECAUSE.fill(finding=finding))

    @transition(field=state, source=State.PENDING, target=State.SKIPPED)
    def exclude(self, exclusion: int | None, finding: str) -> None:
        """Skip the action because of a rule (its primary key), when its plan is created or before it begins."""
        self.exclusion_id = exclusion
        self.control = self.due_time = None
        self.status_message = cut(SKIPPED_BECAUSE.fill(finding=finding))

    @transition(field=state, source=State.PENDING, target=State.ONGOING)
    def begin(self, owner: int | None = None) -> None:
        """Begin the execution, after the pre_condition passed."""
        self.losses = 0
        self.take(owner)

    @transition(field=state, source=State.ONGOING, target=State.ONGOING)
    def begin_again(self, owner: int | None = None) -> None:
        """Run the action again after the loss of its worker, as its type permits."""
        self.take(owner)

    @transition(field=state, source=State.SUCCEEDED, target=State.SUCCEEDED)
    def begin_revert(self, owner: int | None) -> None:
        """Begin the rollback of the action. It counts as an attempt, so that a duplicate request fails its guard."""
        self.attempt += 1
        self.owner_id = owner

    @transition(field=state, source=State.SUCCEEDED, target=State.SUCCEEDED)
    def end_revert(self) -> None:
        self.owner = None

    @transition(field=state, source=State.SUCCEEDED, target=State.SUCCEEDED)
    def give_up_revert(self) -> None:
        """Give up the rollback after the loss of its worker. The new attempt makes that worker's writes fail."""
        self.attempt += 1
        self.owner = None

    @transition(field=state, source=State.ONGOING, target=State.SUCCEEDED)
    def succeed(self) -> None:
        self.release()

    @transition(field=state, source=State.ONGOING, target=State.PENDING)
    def defer(self, reason: str, until: datetime | None = None, lock_holder: UUID | None = None) -> None:
        """Defer the action because of an obstacle: it is released, and begins again after a pause that doubles.

        If ``until`` is known, the pauses up to this time are short and do not count as retries, up to the first such
        time or the timeout of an execution. Pauses for a lock do not count either, up to the timeout of an execution
        or until the holder ends.
        """
        self.owner = None
        now, pause = timezone.now(), timedelta(seconds=settings.ACTION_RETRY_INTERVAL)
        if self.may_wait_for(until, lock_holder):
            self.lock_holder = lock_holder
            self.waits_until = self.waits_until or max(until or now, now + self.time_allowed)
            if until is None:
                pause *= 2 ** min(self.attempt - 1, MOST_DOUBLINGS)
            self.due_time = min(now + pause, until or self.waits_until)
        else:
            self.due_time = now + pause * 2**self.retries
            self.retries += 1
        if not self.has_derived:  # An action that continues keeps its beginning and its outputs.
            self.start_time, self.outputs = None, {}
        self.status_message = cut(DEFERRED_BECAUSE.fill(reason=reason))

    @transition(field=state, source=State.ONGOING, target=State.PENDING)
    def wait_for_derived(self, reason: str, pause: float = 0) -> None:
        """Wait for the derived actions: the worker releases the action, which continues when they have ended.

        ``pause``, the seconds before they begin, does not count towards the timeout.
        """
        since = self.waits_until if self.has_derived else None
        self.waits_until = (since or (self.start_time or timezone.now()) + self.time_allowed) + timedelta(
            seconds=pause
        )
        self.owner, self.has_derived = None, True
        self.status_message = cut(reason)

    @transition(field=state, source=[State.PENDING, State.ONGOING, State.SUSPENDED], target=State.FAILED)
    def fail(self, phase: str, reason: str) -> None:
        self.release()
        self.status_message = cut(FAILED_BECAUSE.fill(phase=PHASE_LABELS.get(phase, phase), reason=reason))
        self.outputs = {**self.outputs, "error": without_controls(make_storable(reason))}

    @transition(field=state, source=[State.PENDING], target=State.CANCELLED)
    def cancel(self, reason: str) -> None:
        """Cancel an action that has not begun or is deferred, for a user or with its plan."""
        self.status_message, self.control = cut(reason), None

    @transition(field=state, source=State.ONGOING, target=State.SUSPENDED)
    def suspend(self) -> None:
        """Suspend the action for a user, until a signal to resume or cancel, or until its plan is cancelled."""
        self.control = None

    @transition(field=state, source=State.SUSPENDED, target=State.ONGOING)
    def resume(self) -> None:
        self.control, self.losses = None, 0

    @transition(field=state, source=[State.ONGOING, State.SUSPENDED], target=State.CANCELLING)
    def request_abort(self) -> None:
        """Request the abortion of a running action, for a user, a cancelled plan, or the action itself."""
        self.control = None

    @transition(field=state, source=State.PENDING, target=State.CANCELLING, conditions=[waits_for_derived])
    def abort_waiting(self) -> None:
        """Request the abortion of an action that waits for derived actions. It is aborted when these have ended.

        Its plan is being cancelled, a user cancels it, or it timed out.
        """
        self.control = None

    @transition(field=state, source=State.CANCELLING, target=State.CANCELLED)
    def finish_abort(self, reason: str) -> None:
        self.release()
        self.status_message = cut(reason)

    @transition(field=state, source=State.CANCELLING, target=State.SUCCEEDED)
    def finish_before_abort(self) -> None:
        """Record that the action had finished before the abortion took effect."""
        self.release()

    @transition(field=state, source=State.CANCELLING, target=State.FAILED)
    def fail_abort(self, reason: str, phase: str = "abort") -> None:
        """Record that the abortion failed or, with another ``phase``, that this phase failed before the abortion."""
        self.release()
        self.status_message = cut(FAILED_BECAUSE.fill(phase=PHASE_LABELS.get(phase, phase), reason=reason))
        self.outputs = {**self.outputs, "error": without_controls(make_storable(reason))}


class ActionParent(models.Model):
    """An edge of a plan's graph: the child starts when the parent has finished."""

    child = models.ForeignKey(Action, models.CASCADE, related_name="parent_links")
    parent = models.ForeignKey(Action, models.CASCADE, related_name="child_links")

    class Meta:
        constraints = [
            models.UniqueConstraint("child", "parent", name="action_parent_once"),
            models.CheckConstraint(condition=~Q(child=F("parent")), name="action_parent_other"),
        ]

    def __str__(self) -> str:
        return f"{self.parent_id} before {self.child_id}"
