"""Action plans, which audits propose, users prune and start, and appliers run."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.db.models import F, Q
from django.utils import timezone
from django_fsm import FSMField, transition

from actions.messages import CANCELLED_WITH_PLAN_BY_USER, PLAN_STATE_FORBIDS
from actions.models.plan_states import PRUNABLE_PLAN, RUNNING_PLAN, PlanState
from actions.types.hooks import require_current_actions
from plans import messages
from plans.messages import PLAN_CANCELLED_BY_USER, REQUIRES_APPROVAL, WINDOW_IS_OVER
from plans.models.querysets import ActionPlanQuerySet
from plans.models.summaries import summarize
from watcher_site.database.records import NullsFirst
from watcher_site.history import differences, entries_of, record
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut
from watcher_site.models import Service
from watcher_site.monitoring.metrics import action_plan_seconds
from watcher_site.refusals import Conflict, Invalid
from watcher_site.request_context import CallingContext, seal, unseal
from watcher_site.state_machine import StatefulModel
from watcher_site.windows.maintenance import Window
from watcher_site.windows.wall_clock import read_window, read_zone

Hours = tuple[datetime | None, datetime | None]


@dataclass(frozen=True)
class Schedule:
    """The times of a plan: none of its actions begins before ``start_at``, nor while the ``window`` is closed."""

    start_at: datetime | None = None
    window: Window | None = None

    def hours(self, now: datetime) -> Hours | None:
        """Return the next time at which the plan may begin and the end of that period, each None if unlimited.

        Returns None instead of a pair if the window is over.
        """
        if self.window is None:
            return self.start_at, None
        opening = self.window.opening(max(now, self.start_at or now))
        return None if opening is None else (opening, self.window.closing(opening))


class ActionPlan(StatefulModel):
    """A set of actions in a partial order, with the states of docs/compatibility.md, "Action plan states"."""

    State = PlanState

    class OnFailure(models.TextChoices):
        """The handling of actions that depend on an action which failed or was cancelled."""

        CONTINUE = "continue", "dependent actions are executed"
        STOP = "stop", "dependent actions fail or are cancelled, too"

    FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SUPERSEDED})
    RUNNING = RUNNING_PLAN
    # The states in which actions may be skipped, because none has begun.
    PRUNABLE = PRUNABLE_PLAN
    DELETABLE = FINAL | {State.RECOMMENDED}
    CANCELLABLE = PRUNABLE | {State.ONGOING}
    # The states in which the schedule can be changed.
    SCHEDULABLE = PRUNABLE | {State.ONGOING}
    # The states in which a plan can be suspended and resumed.
    SUSPENDABLE = frozenset({State.PENDING, State.ONGOING})
    # The states of plans that ended with unfinished actions.
    CONTINUABLE = frozenset({State.FAILED, State.CANCELLED})

    notified_as = "action_plan"

    # An applier whose lease expired no longer owns the plan, and its writes fail.
    guard_fields = ["state", "applier"]
    transition_fields = [
        *("state", "status_message", "applier", "hostname", "context", "started_by", "project_id"),
        *("start_time", "end_time"),
    ]

    audit = models.ForeignKey("audits.Audit", models.SET_NULL, null=True, related_name="action_plans")
    strategy = models.ForeignKey("audits.Strategy", models.SET_NULL, null=True, related_name="action_plans")
    state = FSMField(max_length=20, choices=State, default=State.RECOMMENDED, protected=True, editable=False)
    status_message = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True)
    on_failure = models.CharField(
        max_length=20, choices=OnFailure, default=OnFailure.CONTINUE, db_default=OnFailure.CONTINUE
    )
    global_efficacy = models.JSONField(default=list)
    hostname = models.CharField(max_length=255, null=True, help_text="host of the last applier of the plan")
    applier = models.ForeignKey(Service, models.SET_NULL, null=True, related_name="action_plans")
    context = models.TextField(
        null=True, editable=False, help_text="the encrypted calling context of the start, until the plan ends"
    )
    started_by = models.CharField(
        max_length=255, null=True, editable=False, help_text="the name of the user who started the plan"
    )
    project_id = models.CharField(
        max_length=255, null=True, editable=False, help_text="project of the start; null: unknown"
    )
    start_time = models.DateTimeField(null=True, editable=False, help_text="time at which an applier claimed the plan")
    end_time = models.DateTimeField(
        null=True, editable=False, help_text="time at which the plan reached its final state"
    )
    # These columns are not in transition_fields: a transition would write the values that it read earlier.
    suspended_by = models.CharField(
        max_length=255,
        null=True,
        editable=False,
        help_text="the name of the user who suspended the plan; null: not suspended",
    )
    signals = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="number of signals to the plan and its actions; a change notifies the applier",
    )

    approved_by = models.CharField(
        max_length=255, null=True, editable=False, help_text="the name of the user who approved the start"
    )
    approved_at = models.DateTimeField(null=True, editable=False, help_text="time of the approval")

    start_at = models.DateTimeField(null=True, help_text="time before which no action of the plan begins")
    zone = models.CharField(
        max_length=64, default="UTC", db_default="UTC", help_text="time zone of the times that users enter"
    )
    window = models.JSONField(
        null=True, help_text="the maintenance window in which the plan and its actions begin; null: any time"
    )
    # The next period in which actions may begin, computed from these columns.
    opens_at = models.DateTimeField(null=True, editable=False)
    closes_at = models.DateTimeField(null=True, editable=False)
    continues = models.ForeignKey(
        "self",
        models.SET_NULL,
        null=True,
        related_name="continuations",
        db_index=False,
        help_text="the plan whose unsuccessful actions this plan repeats",
    )

    objects = ActionPlanQuerySet.as_manager()

    class Meta:
        permissions = [
            ("start_actionplan", "Can start action plan"),
            ("cancel_actionplan", "Can cancel action plan"),
            ("continue_actionplan", "Can continue action plan"),
            ("approve_actionplan", "Can approve action plan"),
        ]
        constraints = [
            # Of two concurrent continuations of a plan, only one is created.
            models.UniqueConstraint(
                "continues", condition=Q(deleted_at=None, continues__isnull=False), name="action_plan_continued_once"
            ),
        ]
        indexes = [
            # Purging a plan searches the plans that continue it, including deleted ones.
            models.Index("continues", condition=Q(continues__isnull=False), name="action_plan_continues"),
            # The applier selects waiting and running plans by state; the lists of users sort by it.
            models.Index("state", "id", name="action_plan_by_state"),
            models.Index("created_at", "id", name="action_plan_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="action_plan_updated_at"),
            models.Index(NullsFirst("hostname"), "id", name="action_plan_hostname"),
            # The console sorts by these.
            models.Index(NullsFirst("start_time"), "id", name="action_plan_start_time"),
            models.Index(NullsFirst("end_time"), "id", name="action_plan_end_time"),
        ]

    @property
    def caller(self) -> CallingContext:
        """The calling context of the plan's start; empty if there is none, or if the key of the site was changed."""
        try:
            return unseal(self.context) if self.context else CallingContext()
        except Invalid:
            return CallingContext()

    @property
    def request_id(self) -> str:
        """The id of the request that started the plan; empty if none did, or if the key of the site was changed."""
        return str(self.caller.get("request_id") or "")

    def count_change(self, before: str, state: str) -> None:
        super().count_change(before, state)
        if state in self.FINAL and self.start_time and self.end_time:
            action_plan_seconds.labels(state).observe((self.end_time - self.start_time).total_seconds())

    def __str__(self) -> str:
        return str(self.uuid)

    @property
    def called(self) -> str:
        """The name of the plan for users: the name of its audit, or the requested operation. It may be empty.

        For plans that were selected by `with_names`, this takes no query.
        """
        if self.audit is not None:
            return self.audit.name
        if not hasattr(self, "operation"):
            plans = type(self).objects.filter(pk=self.pk).with_operation()
            return plans.values_list("operation", flat=True).first() or ""
        return self.operation or ""

    @property
    def is_prunable(self) -> bool:
        return self.state in self.PRUNABLE

    @property
    def schedule(self) -> Schedule:
        """The schedule of the plan. Raises: `Invalid`: its time zone is not known on this machine."""
        return Schedule(self.start_at, read_window(self.window, read_zone(self.zone)))

    @property
    def hours(self) -> Hours | None:
        """The next period in which actions of the plan may begin, or None if its window is over.

        Appliers store the next period when one ends. This property does not depend on a running applier.
        """
        now = timezone.now()
        if self.closes_at is None or now < self.closes_at:
            return self.opens_at, self.closes_at
        try:
            return self.schedule.hours(now)
        except Invalid:
            return None

    @property
    def next_opening(self) -> datetime | None:
        """The time before which no more actions begin; None if they may begin now, or never."""
        opens_at, _ = (self.state in self.SCHEDULABLE and self.hours) or (None, None)
        return opens_at if opens_at and opens_at > timezone.now() else None

    def continuation(self) -> "ActionPlan | None":
        """Return the plan that continues this one, or None. Deleted plans are ignored."""
        return type(self).objects.present().with_names().filter(continues=self.pk).first()

    @property
    def is_suspended(self) -> bool:
        return self.suspended_by is not None and self.state in self.SUSPENDABLE

    @property
    def is_approved(self) -> bool:
        return self.approved_by is not None

    def is_approved_for(self, user: str) -> bool:
        """Return whether another user than this one has approved the start of the plan."""
        return self.is_approved and self.approved_by != user

    def notify_applier(self) -> None:
        """Notify the plan's applier of a signal. The caller has locked the row of the plan."""
        type(self).objects.filter(pk=self.pk).update(signals=F("signals") + 1)

    @transition(field=state, source=State.RECOMMENDED, target=State.PENDING)
    def start(self) -> None:
        """Start the plan, by a request of a user or by auto_trigger of its audit."""

    @transition(field=state, source=State.PENDING, target=State.ONGOING)
    def begin(self, applier: Service) -> None:
        """Begin the plan: an applier claims it."""
        self.applier, self.hostname = applier, applier.host
        self.start_time = timezone.now()

    def end(self, message: str | None) -> None:
        """Store the end of the plan, and clear its applier and the calling context of its start."""
        self.status_message = message and cut(message)
        self.applier = self.context = None
        self.end_time = timezone.now()

    @transition(field=state, source=[State.RECOMMENDED, State.ONGOING, State.CANCELLING], target=State.SUCCEEDED)
    def succeed(self, message: str | None = None) -> None:
        """End the plan as SUCCEEDED: all actions have finished and none failed, or it was created without actions.

        A cancellation that finds no action to cancel does not change this.
        """
        self.end(message)

    @transition(field=state, source=[State.PENDING, State.ONGOING, State.CANCELLING], target=State.FAILED)
    def fail(self, message: str | None = None) -> None:
        """End the plan as FAILED: one of its actions failed, or an applier could not execute it."""
        self.end(message)

    @transition(field=state, source=[State.RECOMMENDED, State.PENDING], target=State.CANCELLED)
    def cancel(self, message: str) -> None:
        """Cancel the plan before any of its actions began. The caller also cancels its pending actions."""
        self.end(message)

    @transition(field=state, source=State.ONGOING, target=State.CANCELLING)
    def request_cancel(self, message: str) -> None:
        """Request that the applier aborts the running actions and begins no others."""
        self.status_message = cut(message)

    @transition(field=state, source=[State.ONGOING, State.CANCELLING], target=State.CANCELLED)
    def finish_cancel(self, message: str | None) -> None:
        """End the plan as CANCELLED: the plan or single actions of it were cancelled."""
        self.end(message)

    @transition(field=state, source=State.RECOMMENDED, target=State.SUPERSEDED)
    def supersede(self, message: str) -> None:
        """End the plan as SUPERSEDED: a newer plan replaces it, or it has expired."""
        self.end(message)

    @transaction.atomic
    def launch(self, caller: CallingContext | None = None, *, needs_approval: bool = True) -> None:
        """Start the plan for a user or an audit.

        Args:
            caller: the calling context in which its actions are executed.
            needs_approval: whether the setting `PLAN_APPROVAL` applies. It does not to plans that start in the
                transaction that creates them, because nobody could approve these before.

        Raises:
            NotFound: the plan was deleted meanwhile.
            TransitionNotAllowed, ConcurrentTransition: the plan is not RECOMMENDED, or it changed its state or its
                approval meanwhile.
            Conflict: no other user has approved the start; its maintenance window is over; or the objects of its
                actions were changed since it was planned.
        """
        self.start()
        guards = self.require_approval(caller or CallingContext()) if settings.PLAN_APPROVAL and needs_approval else {}
        if self.hours is None:
            raise Conflict(WINDOW_IS_OVER.fill(uuid=self.uuid))
        self.context = seal(caller) if caller else None
        if caller:
            self.started_by, self.project_id = caller.get("user"), caller.get("project")
        self.save_requested_state(*entries_of("action_plan.start", self), guards=guards)
        require_current_actions(self.actions)

    def require_approval(self, caller: CallingContext) -> dict[str, Any]:
        """Return the guards of a start that requires the approval of another user. Raises: `Conflict`."""
        if not self.is_approved_for(caller.get("user", "")):
            raise Conflict(REQUIRES_APPROVAL.fill(uuid=self.uuid))
        return {"approved_by": self.approved_by, "approved_at": self.approved_at}

    @transaction.atomic
    def abandon(self, by: str) -> None:
        """Cancel the plan for a user: immediately if it has not begun, otherwise through its applier.

        Skipped actions stay SKIPPED. The status message of a plan that ends here lists them.

        Raises:
            NotFound: the plan was deleted meanwhile.
            TransitionNotAllowed, ConcurrentTransition: the plan is final, or changed its state meanwhile.
        """
        message = PLAN_CANCELLED_BY_USER.fill(user=by)
        if self.state == self.State.ONGOING:
            self.request_cancel(message)
            self.save_requested_state()
        else:
            # Skips lock the same row: a concurrent skip is either committed before, or refused.
            type(self).objects.locked().filter(pk=self.pk).first()
            self.cancel(summarize(self.actions.all(), self.actions.count_states(), message) or message)
            self.save_requested_state()
            self.actions.cancel_pending(CANCELLED_WITH_PLAN_BY_USER.fill(user=by))
        record("action_plan.cancel", self)

    @transaction.atomic
    def choose_on_failure(self, value: str) -> None:
        """Set the handling of failures, before any action of the plan begins.

        Raises:
            Invalid: the value is unknown.
            NotFound: the plan was deleted.
            Conflict: the plan has begun or ended.
        """
        if value not in self.OnFailure.values:
            choices = " or ".join(self.OnFailure.values)
            raise Invalid(messages.ON_FAILURE_VALUES.fill(value=value, values=choices))
        prunable = type(self).objects.present().filter(pk=self.pk, state__in=self.PRUNABLE)
        if not prunable.update(on_failure=value, updated_at=timezone.now()):
            current = type(self).objects.find(self.uuid)
            raise Conflict(PLAN_STATE_FORBIDS.fill(field="on_failure", state=current.state))
        record("action_plan.update", self, details=differences({"on_failure": self.on_failure}, {"on_failure": value}))
        self.on_failure = value

    @transaction.atomic
    def remove(self) -> None:
        """Mark the plan and its actions as deleted. They can be shown on request until they are purged.

        Raises:
            Invalid: the plan is waiting or running.
            NotFound: the plan was already deleted.
        """
        deleted = type(self).objects.filter(pk=self.pk, state__in=self.DELETABLE).soft_delete()
        if not deleted:
            raise self.undeletable()
        self.actions.all().soft_delete()
        record("action_plan.delete", self)


class EfficacyIndicator(models.Model):
    """The value of one indicator of a plan's efficacy."""

    action_plan = models.ForeignKey(ActionPlan, models.CASCADE, related_name="efficacy_indicators")
    name = models.CharField(max_length=63)
    description = models.CharField(max_length=255, default="")
    unit = models.CharField(max_length=63, null=True)
    value = models.FloatField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint("action_plan", "name", name="efficacy_indicator_once")]

    def __str__(self) -> str:
        return f"{self.name}: {self.value:g}"
