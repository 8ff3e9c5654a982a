"""One action of a plan: its states, its place in the plan's graph, and the record of its phases."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django_fsm import FSMField, transition

from actions.exclusions.models import Exclusion
from actions.fields import FilledCharField
from actions.instance_actions import InstanceAction
from actions.naming import generated_name, resource, target
from actions.querysets import ActionQuerySet
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut, without_controls
from watcher_site.models import Service
from watcher_site.records import NullsFirst
from watcher_site.state import StatefulModel
from watcher_site.storable import make_storable

__all__ = ["Action", "ActionEvent", "ActionParent", "InstanceAction"]

SKIPPED_BY_USER = "Action skipped by user."
SKIPPED_AUTOMATICALLY = "Action was skipped automatically:"
FAILED_IN = "Action failed in"
# What people read of phases that have a name in code alone.
PHASE_WORDS = {"go_on": "completion", "wait": "waiting"}
NOT_EXECUTED = "Action was not executed:"
PUT_OFF = "Action is tried again later:"
# The pauses of an action that waits for a lock grow to 16 times the first one.
MOST_DOUBLINGS = 4
REASON = " Reason: "
NOTE = " Note: "
# A person's words are never cut, so they must fit behind the longest of our own.
REASON_LENGTH = STATUS_MESSAGE_LENGTH - len(f"{SKIPPED_BY_USER}{REASON}")


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
        """A signal that a person may give to an action (docs/compatibility.md, "Signals")."""

        CANCEL = "CANCEL"
        SUSPEND = "SUSPEND"
        RESUME = "RESUME"

    CARRIED_OUT = frozenset({State.SUCCEEDED, State.FAILED})
    UNDER_WAY = frozenset({State.ONGOING, State.CANCELLING})
    BEGUN = UNDER_WAY | {State.SUSPENDED}
    FINAL = CARRIED_OUT | {State.SKIPPED, State.CANCELLED}

    notified_as = "action"

    # A worker whose lease ran out was given an older attempt, or is no longer the owner, and can no longer write.
    guard_fields = ["state", "attempt", "owner"]
    transition_fields = [
        *("state", "status_message", "skipped_by", "reason", "exclusion", "attempt"),
        *("owner", "start_time", "end_time", "retries", "due_time", "has_derived", "control", "losses"),
    ]

    name = FilledCharField("make_name", max_length=255, default="", db_default="")
    target = FilledCharField("make_target", max_length=255, null=True, help_text="what it acts on, mostly a UUID")
    outputs = models.JSONField(
        default=dict, db_default={}, editable=False, help_text="what came of it, and why it failed"
    )
    data = models.JSONField(
        default=dict, db_default={}, editable=False, help_text="what its type keeps from one run to the next"
    )
    action_plan = models.ForeignKey("plans.ActionPlan", models.CASCADE, related_name="actions")
    action_type = models.CharField(max_length=255)
    input_parameters = models.JSONField(default=dict)
    state = FSMField(max_length=20, choices=State, default=State.PENDING, protected=True, editable=False)
    status_message = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True)
    control = models.CharField(
        max_length=10, choices=Signal, null=True, editable=False, help_text="the signal that it has not honoured yet"
    )
    skipped_by = models.CharField(max_length=255, null=True, help_text="the user name of who skipped it")
    reason = models.CharField(
        max_length=REASON_LENGTH, default="", db_default="", help_text="what a person wrote about its being skipped"
    )
    exclusion = models.ForeignKey(
        Exclusion,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="actions",
        db_index=False,
        help_text="the rule that it was skipped by",
    )
    attempt = models.PositiveIntegerField(default=0, editable=False)
    losses = models.PositiveSmallIntegerField(
        default=0, db_default=0, editable=False, help_text="how many processes were lost while they executed it"
    )
    # No constraint: the database would lock the applier's one row at each beginning, and no row of a service that
    # actions are in the hands of is ever deleted.
    owner = models.ForeignKey(
        Service,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="actions",
        db_constraint=False,
        db_index=False,
        help_text="the applier or the worker that executes it",
    )
    timeout = models.PositiveIntegerField(null=True, help_text="in seconds; null or 0: the site's default")
    interval = models.PositiveIntegerField(default=0, db_default=0, help_text="in seconds; 0: it is not repeated")
    start_time = models.DateTimeField(null=True, editable=False, help_text="when its execution last began")
    end_time = models.DateTimeField(null=True, editable=False, help_text="when its execution ended")
    retries = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="how often it was put off"
    )
    due_time = models.DateTimeField(null=True, editable=False, help_text="before which it does not begin again")
    waits_until = models.DateTimeField(
        null=True, editable=False, help_text="how long it may wait, for what it derived or for what is in its way"
    )
    lock_holder = models.UUIDField(null=True, editable=False, help_text="the action whose lock it waits for")
    derived_from = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        editable=False,
        related_name="derived",
        db_index=False,
        help_text="the action that made it while it ran, or will take it up then, and waits for it",
    )
    has_derived = models.BooleanField(
        default=False, db_default=False, editable=False, help_text="it made others: when they have ended, it goes on"
    )
    has_planned = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="others that it is to derive were written into the plan with it",
    )
    is_planned = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="it was written into the plan with the one that is to derive it",
    )
    initial_data = models.JSONField(null=True, editable=False, help_text="the data that it was proposed with, if any")
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
            # The applier asks for a plan's pending and unfinished actions; lists filter by plan.
            models.Index("action_plan", "state", "id", name="action_plan_state"),
            # The sort keys of the API. Nulls come first, as on every database that clients know.
            models.Index("state", "id", name="action_state"),
            models.Index("action_type", "id", name="action_type"),
            models.Index("created_at", "id", name="action_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="action_updated_at"),
            models.Index("name", "id", name="action_name"),
            models.Index(NullsFirst("target"), "id", name="action_target"),
            # Who is gone is kept as long as actions are in its hands.
            models.Index("owner", condition=Q(owner__isnull=False), name="action_owner"),
            # The page of a rule shows what it excluded.
            models.Index("exclusion", "id", condition=Q(exclusion__isnull=False), name="action_exclusion"),
            # The applier asks which of its actions wait for longer than they may.
            models.Index(
                "waits_until",
                condition=Q(state="PENDING", waits_until__isnull=False),
                name="action_waits_until",
            ),
            # An action that ends wakes those that wait for its lock.
            models.Index("lock_holder", condition=Q(lock_holder__isnull=False), name="action_lock_holder"),
            # The applier reads page by page what an action derived.
            models.Index("derived_from", "id", condition=Q(derived_from__isnull=False), name="action_derived_from"),
        ]

    def __str__(self) -> str:
        return f"{self.action_type} {self.uuid}"

    @property
    def called(self) -> str:
        """What people call it: its type, and the name of what it acts on."""
        return f"{self.action_type} {resource(self.input_parameters)}".strip()

    def make_name(self) -> str:
        return generated_name(self.action_type, self.uuid)

    def make_target(self) -> str | None:
        return target(self.action_type, self.input_parameters)

    @property
    def seconds_allowed(self) -> int:
        """How long one execution may take, and then the waiting for what it derived, from the same beginning."""
        return self.timeout or settings.DEFAULT_ACTION_TIMEOUT

    @property
    def time_allowed(self) -> timedelta:
        return timedelta(seconds=self.seconds_allowed)

    def may_wait_for(self, until: datetime | None, lock_holder: UUID | None = None) -> bool:
        """Return whether a retry until a time or for a lock does not count; `waits_until` bounds this."""
        is_known = lock_holder is not None or is_ahead(until)
        return is_known and (self.waits_until is None or is_ahead(self.waits_until))

    @property
    def touched_fields(self) -> list[str]:
        """The columns to write: few actions have outputs, or had any before they were put off, and few ever wait."""
        others = {
            "outputs": self.outputs or self.retries,
            "waits_until": self.waits_until,
            "lock_holder": self.waits_until,
        }
        return [*self.transition_fields, *(name for name, is_touched in others.items() if is_touched)]

    def take(self, owner: int | None) -> None:
        """Count a new attempt, from now on, in the hands of the service that has this primary key."""
        self.attempt += 1
        self.owner_id, self.end_time = owner, None
        # What goes on after it waited for what it derived began before that.
        self.start_time = (self.has_derived and self.start_time) or timezone.now()
        self.status_message = self.due_time = self.lock_holder = None

    def let_go(self) -> None:
        """Leave the hands of the applier. What never began has neither a beginning nor an end.

        What ended before it honoured a signal ended: the signal is done with.
        """
        self.owner = self.control = None
        self.end_time = self.start_time and timezone.now()

    @property
    def is_to_derive(self) -> bool:
        """Whether others that were planned wait for it to derive them."""
        return self.has_planned and not self.has_derived

    @transition(field=state, source=State.PENDING, target=State.SKIPPED)
    def skip(self, by: str, reason: str = "") -> None:
        """A person excludes the action. The caller holds the plan's row and has asked `ActionPlan.is_prunable`."""
        self.skipped_by = by
        self.comment(reason)

    @transition(field=state, source=State.PENDING, target=State.SKIPPED)
    def skip_as_earlier(self, by: str, reason: str) -> None:
        """Skip the action, as a person skipped it in the earlier plan that its plan replaces."""
        self.skipped_by, self.reason = by, reason
        self.status_message = cut(
            f"{SKIPPED_BY_USER} Skipped by {by} in an earlier plan{f': {reason}' if reason else '.'}"
        )

    @property
    def is_restorable(self) -> bool:
        """Whether a person or a rule skipped it, and not the one that is to derive it; nothing of its plan began."""
        is_skipped = self.state == self.State.SKIPPED and may_be_restored(self)
        return is_skipped and self.action_plan.is_prunable and not self.is_origin_skipped

    @property
    def is_origin_skipped(self) -> bool:
        """Whether the action is skipped that is to derive it."""
        return self.derived_from is not None and self.derived_from.state == self.State.SKIPPED

    @property
    def finding(self) -> str:
        """What the message of a SKIPPED action says before a person's words, in the texts that clients know."""
        if self.skipped_by is not None:
            return SKIPPED_BY_USER
        return (self.status_message or SKIPPED_AUTOMATICALLY).removesuffix(f"{NOTE}{self.reason}")

    def comment(self, reason: str) -> None:
        """Put a person's words, of at most `REASON_LENGTH` characters, into the message of a SKIPPED action.

        What an action found out by itself stays: nobody reads "skipped by user" of what no user skipped. It is
        cut where it leaves no room; its event keeps the whole.
        """
        finding = self.finding
        words = f"{NOTE if self.skipped_by is None else REASON}{reason}" if reason else ""
        self.status_message = f"{cut(finding, STATUS_MESSAGE_LENGTH - len(words))}{words}"
        self.reason = reason

    @transition(field=state, source=State.SKIPPED, target=State.PENDING, conditions=[may_be_restored])
    def restore(self) -> None:
        """A person takes back what a person, or a rule that is no more, skipped. The caller holds the plan's row."""
        self.skipped_by, self.reason, self.status_message, self.exclusion = None, "", None, None

    @transition(field=state, source=State.PENDING, target=State.SKIPPED)
    def skip_automatically(self, finding: str) -> None:
        """Its pre_condition found that it no longer applies."""
        self.control = None
        self.status_message = cut(f"{SKIPPED_AUTOMATICALLY} {finding}")

    @transition(field=state, source=State.PENDING, target=State.SKIPPED)
    def exclude(self, exclusion: int | None, finding: str) -> None:
        """A rule, by its primary key, keeps it from being executed: when its plan is made, or when it is to begin."""
        self.exclusion_id = exclusion
        self.control = self.due_time = None
        self.status_message = cut(f"{SKIPPED_AUTOMATICALLY} {finding}")

    @transition(field=state, source=State.PENDING, target=State.ONGOING)
    def begin(self, owner: int | None = None) -> None:
        """Its pre_condition passed, and a worker is about to execute it."""
        self.losses = 0
        self.take(owner)

    @transition(field=state, source=State.ONGOING, target=State.ONGOING)
    def begin_again(self, owner: int | None = None) -> None:
        """The worker that executed it is gone, and its type says that it can be run again."""
        self.take(owner)

    @transition(field=state, source=State.SUCCEEDED, target=State.SUCCEEDED)
    def begin_revert(self, owner: int | None) -> None:
        """A rollback is about to undo it. That counts as an attempt: who is told to a second time, comes too late."""
        self.attempt += 1
        self.owner_id = owner

    @transition(field=state, source=State.SUCCEEDED, target=State.SUCCEEDED)
    def end_revert(self) -> None:
        self.owner = None

    @transition(field=state, source=State.SUCCEEDED, target=State.SUCCEEDED)
    def give_up_revert(self) -> None:
        """Its worker does not come back from it; should it after all, the next attempt is not its own."""
        self.attempt += 1
        self.owner = None

    @transition(field=state, source=State.ONGOING, target=State.SUCCEEDED)
    def succeed(self) -> None:
        self.let_go()

    @transition(field=state, source=State.ONGOING, target=State.PENDING)
    def put_off(self, reason: str, until: datetime | None = None, lock_holder: UUID | None = None) -> None:
        """Something was in the way: its worker lets go of it, and it begins anew after a pause that doubles.

        Where it is known ``until`` when that will be so, the pauses are short up to then, and do not count: up to the
        time that was named first, or for as long as an execution may take. Neither do they where it waits for a lock:
        for as long as an execution may take, or until the holder ends.
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
        if not self.has_derived:  # What is to go on began before, and keeps what it told then.
            self.start_time, self.outputs = None, {}
        self.status_message = cut(f"{PUT_OFF} {reason}")

    @transition(field=state, source=State.ONGOING, target=State.PENDING)
    def wait_for_derived(self, reason: str, pause: float = 0) -> None:
        """It made others: its worker lets go of it, and it goes on when they have ended.

        A pause, in seconds, before these begin is none of its time.
        """
        since = self.waits_until if self.has_derived else None
        self.waits_until = (since or (self.start_time or timezone.now()) + self.time_allowed) + timedelta(
            seconds=pause
        )
        self.owner, self.has_derived = None, True
        self.status_message = cut(reason)

    @transition(field=state, source=[State.PENDING, State.ONGOING, State.SUSPENDED], target=State.FAILED)
    def fail(self, phase: str, reason: str) -> None:
        self.let_go()
        self.status_message = cut(f"{FAILED_IN} {PHASE_WORDS.get(phase, phase)}: {reason}")
        self.outputs = {**self.outputs, "error": without_controls(make_storable(reason))}

    @transition(field=state, source=[State.PENDING], target=State.CANCELLED)
    def cancel(self, reason: str) -> None:
        """It does not begin (again): its plan was cancelled or superseded, or a person cancelled it."""
        self.status_message, self.control = cut(reason), None

    @transition(field=state, source=State.ONGOING, target=State.SUSPENDED)
    def suspend(self) -> None:
        """It waits, as a person asked it to, for a signal to go on or to end, or for its plan to be cancelled."""
        self.control = None

    @transition(field=state, source=State.SUSPENDED, target=State.ONGOING)
    def resume(self) -> None:
        self.control, self.losses = None, 0

    @transition(field=state, source=[State.ONGOING, State.SUSPENDED], target=State.CANCELLING)
    def request_abort(self) -> None:
        """It was begun, and its plan is being cancelled, or a person cancels it, or it gives itself up."""
        self.control = None

    @transition(field=state, source=State.PENDING, target=State.CANCELLING, conditions=[waits_for_derived])
    def abort_waiting(self) -> None:
        """It is to end while it waits for what it derived: it is aborted when these have ended.

        Its plan is being cancelled, or a person cancels it, or its time is over.
        """
        self.control = None

    @transition(field=state, source=State.CANCELLING, target=State.CANCELLED)
    def finish_abort(self, reason: str) -> None:
        self.let_go()
        self.status_message = cut(reason)

    @transition(field=state, source=State.CANCELLING, target=State.SUCCEEDED)
    def finish_before_abort(self) -> None:
        """It had finished already when the abort reached it."""
        self.let_go()

    @transition(field=state, source=State.CANCELLING, target=State.FAILED)
    def fail_abort(self, reason: str, phase: str = "abort") -> None:
        """It could not be aborted; or, with another phase, it was aborted since that had failed."""
        self.let_go()
        self.status_message = cut(f"{FAILED_IN} {PHASE_WORDS.get(phase, phase)}: {reason}")
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


class ActionEvent(models.Model):
    """One phase of an action: when it began and ended, on which host, and with which result.

    ``details`` is as docs/compatibility.md, "Event details" describes.
    """

    class Result(models.TextChoices):
        SUCCESS = "Success"
        SKIPPED = "Skipped"
        CANCELLED = "Cancelled"
        ERROR = "Error"
        RETRY = "Retry"
        WAITING = "Waiting"

    # What they tell is for those who may see details; of the others it is in the action's status message as well.
    FAULTS = frozenset({Result.ERROR, Result.CANCELLED})

    action = models.ForeignKey(Action, models.CASCADE, related_name="events")
    event = models.CharField(max_length=64)
    attempt = models.PositiveIntegerField(default=0)
    start_time = models.DateTimeField(default=timezone.now)
    finish_time = models.DateTimeField(null=True)
    result = models.CharField(max_length=20, choices=Result, null=True)
    details = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True)
    host = models.CharField(max_length=255, default="")

    class Meta:
        ordering = ["pk"]
        permissions = [("view_event_details", "Can view event details")]

    @property
    def is_fault(self) -> bool:
        return self.result in self.FAULTS

    def __str__(self) -> str:
        return f"{self.event} of action {self.action_id}"
