"""Queries on actions. The table is the queue of the applier: an action may begin when it is ready.

Readiness is defined both for queries and for rows in memory: the action is PENDING, its parents have ended, and it is
due.
"""

from collections.abc import Sequence, Set
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import (
    Case,
    Count,
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    IntegerField,
    Max,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.expressions import RawSQL
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, Concat, NullIf, Trim
from django.utils import timezone

from actions.models.plan_states import PRUNABLE_PLAN, PlanState
from watcher_site.database.records import RecordQuerySet
from watcher_site.messages import cut
from watcher_site.models import Service
from watcher_site.outbox.writing import NotifiesUpdates
from watcher_site.refusals import Invalid

PENDING = "PENDING"
RESTORABLE = Q(state="SKIPPED") & (Q(skipped_by__isnull=False) | Q(exclusion__isnull=False))
PENDING_ONLY = frozenset({PENDING})
# The pending actions that depend on an action, directly or indirectly. Actions that wait for derived actions are
# excluded: they continue when these have ended.
DEPENDING = """
    WITH RECURSIVE depending(id) AS (
        SELECT {action}.id FROM {link} JOIN {action} ON {action}.id = child_id
        WHERE parent_id = %s AND state = %s AND NOT has_derived AND deleted_at IS NULL
        UNION
        SELECT {action}.id FROM depending
        JOIN {link} ON parent_id = depending.id JOIN {action} ON {action}.id = child_id
        WHERE state = %s AND NOT has_derived AND deleted_at IS NULL
    ) SELECT id FROM depending
"""
# The planned derived actions, directly or indirectly, except those that a user or a rule skipped.
PLANNED = """
    WITH RECURSIVE planned(id) AS (
        SELECT id FROM {action}
        WHERE derived_from_id IN ({origins})
        AND state = %s AND skipped_by IS NULL AND exclusion_id IS NULL AND deleted_at IS NULL
        UNION ALL
        SELECT {action}.id FROM planned JOIN {action} ON derived_from_id = planned.id
        WHERE state = %s AND skipped_by IS NULL AND exclusion_id IS NULL AND deleted_at IS NULL
    ) SELECT id FROM planned
"""


def due_condition(now: Any = None) -> Q:
    """Return the condition of actions that are not deferred to a later time."""
    return Q(due_time=None) | Q(due_time__lte=now or timezone.now())


def is_due(action: Any) -> bool:
    """Return whether an action is not deferred to a later time."""
    return action.due_time is None or action.due_time <= timezone.now()


def is_ready(action: Any, ended: int = 0, states: Set[str] = PENDING_ONLY) -> bool:
    """Return whether an action, read by `ReadinessQuerySet.with_open_parents`, may begin.

    Args:
        ended: the number of its open parents that have ended, or will have.
        states: the states that are treated like PENDING.
    """
    return action.state in states and action.open_parent_count <= ended and is_due(action)


class ReadinessQuerySet(RecordQuerySet):
    def unfinished(self) -> Self:
        return self.present().exclude(state__in=self.model.FINAL)

    def pending(self) -> Self:
        return self.present().filter(state=PENDING)

    def links_to_open_parents(self) -> Any:
        """Return the links of an action of an outer query to its parents that have not finished."""
        links = self.model._meta.get_field("parent_links").related_model.objects
        # Each parent is looked up by its key: with outdated statistics, PostgreSQL would choose a slow join.
        parent = Subquery(self.model.objects.filter(pk=OuterRef("parent")).unfinished().values("pk"))
        return links.filter(child=OuterRef("pk")).alias(open_parent=parent).filter(open_parent__isnull=False)

    def open_parents(self) -> Exists:
        """Return the condition that an action of an outer query has a parent that has not finished."""
        return Exists(self.links_to_open_parents())

    def open_parent_count(self, **conditions: Any) -> Coalesce:
        """Return the number of unfinished parents of an action of an outer query, among links with these values."""
        links = self.links_to_open_parents().filter(**conditions).order_by()
        return Coalesce(Subquery(links.values("child").annotate(number=Count("pk")).values("number")), 0)

    def with_open_parents(self) -> Self:
        """Add ``open_parent_count``, the number of parents that have not finished."""
        return self.annotate(open_parent_count=self.open_parent_count())

    def ready_condition(self, now: Any = None) -> Q:
        """Return the condition of actions that may begin."""
        return Q(state=PENDING) & ~self.open_parents() & due_condition(now)

    def ready(self, now: Any = None) -> Self:
        """Select the actions that may begin."""
        return self.present().filter(self.ready_condition(now))


def living_workers() -> Any:
    return Service.objects.active().workers().values("pk")


class ActionQuerySet(NotifiesUpdates, ReadinessQuerySet):
    def with_plans(self) -> Self:
        """Add the plan of each action with the columns of its name, in one more query."""
        return self.prefetch_related(Prefetch("action_plan", self.named_plans()))

    def named_plans(self) -> QuerySet[Any]:
        """Return the query of all plans with the columns of their names.

        The class of plans is in a higher app: this query uses columns of the relation, and no methods of the class.
        """
        return self.model.action_plan.get_queryset().select_related("audit").annotate(operation=self.plan_operation())

    def plan_operation(self) -> Case:
        """Return the operation of a plan of an outer query that has no audit: the type and object of its first action.

        Derived actions do not count.
        """
        first = self.model.objects.present().filter(action_plan=OuterRef("pk"), derived_from=None).order_by("pk")
        name = Coalesce(KeyTextTransform("resource_name", "input_parameters"), Value(""), output_field=TextField())
        operation = Trim(Concat("action_type", Value(" "), name, output_field=TextField()))
        return Case(When(audit=None, then=Subquery(first.values(operation=operation)[:1])), output_field=TextField())

    def overdue(self) -> Self:
        """Select the actions that exceeded their timeout while waiting for, or to continue after, derived actions."""
        derived = self.model.objects.filter(action_plan=OuterRef("action_plan"), derived_from__isnull=False)
        is_held_up = Q(self.open_parents()) | ~due_condition()
        late = self.pending().filter(is_held_up, has_derived=True, waits_until__lte=timezone.now())
        return late.exclude(Exists(derived.filter(state=self.model.State.SUSPENDED)))

    def restart_timeouts(self, since: Any) -> int:
        """Restart the timeouts of waiting actions at a moment, in one statement."""
        # On SQLite, Django's arithmetic with durations requires the type of each operand.
        seconds = Coalesce(
            NullIf("timeout", Value(0)), Value(settings.DEFAULT_ACTION_TIMEOUT), output_field=IntegerField()
        )
        time_left = ExpressionWrapper(seconds * Value(timedelta(seconds=1), DurationField()), DurationField())
        until = Value(since, DateTimeField()) + time_left
        return self.pending().filter(waits_until__lt=until).update(waits_until=until)

    def deferred(self) -> Self:
        """Select the pending actions with a start time, mostly deferred ones, the earliest first."""
        return self.pending().exclude(due_time=None).order_by("due_time")

    def interrupted(self) -> Self:
        """Select the actions to recover: they began, have not ended, and no living worker owns them.

        An action that is aborted after its derived actions is included when these have ended. A suspended action has
        no owner, and is included when it is recalled.
        """
        unfinished_run = Q(state__in=self.model.UNDER_WAY) & (Q(has_derived=False) | ~self.open_parents())
        return self.present().filter(unfinished_run | self.is_recalled()).exclude(owner__in=living_workers())

    def recalled(self) -> Self:
        """Select the suspended actions that a signal or a cancellation resumes or ends."""
        return self.present().filter(self.is_recalled())

    def is_recalled(self) -> Q:
        reason = Q(control__isnull=False) | Q(action_plan__state=PlanState.CANCELLING)
        return Q(state=self.model.State.SUSPENDED) & reason

    def under_living_worker(self) -> Self:
        """Select the actions that a living worker executes in its own process."""
        return self.present().filter(owner__in=living_workers())

    def runnable_or_running(self) -> Self:
        """Select the actions that may begin or that a living worker owns, in one statement."""
        return self.present().filter(self.ready_condition() | Q(owner__in=living_workers()))

    def release(self, owner: int) -> int:
        """Remove an owner from these actions, so that they are recovered at once."""
        return self.filter(owner=owner).update(owner=None)

    def to_revert(self) -> Self:
        """Select the actions that succeeded and have not been reverted, the last to end first."""
        reverts = self.model._meta.get_field("events").related_model.objects.filter(
            event="revert", action=OuterRef("pk")
        )
        begun_only = reverts.filter(finish_time=None)
        succeeded = self.present().filter(state=self.model.State.SUCCEEDED)
        return succeeded.filter(~Exists(reverts) | Exists(begun_only)).order_by("-updated_at", "-pk")

    def not_achieved(self) -> Self:
        """Select the actions of an ended plan that failed, were cancelled, or succeeded and were reverted.

        Skipped actions are not included: they were not meant to be executed.
        """
        events = self.model._meta.get_field("events").related_model
        reverts = events.objects.filter(event="revert", result=events.Result.SUCCESS, action=OuterRef("pk"))
        states = self.model.State
        unsuccessful = Q(state__in=(states.FAILED, states.CANCELLED))
        return self.present().filter(unsuccessful | Q(Exists(reverts), state=states.SUCCEEDED))

    def identified_by(self, text: str) -> UUID | None:
        """Return the UUID of the only action with a name, or else with a prefix of the UUID, or None.

        Raises:
            Invalid: there are several.
        """
        for candidates in (self.filter(name=text), self.beginning_with(text)):
            uuids = list(candidates.order_by().values_list("uuid", flat=True)[:2])
            if len(uuids) > 1:
                raise Invalid(f"Multiple results found matching the query criteria '{text}'. Please be more specific.")
            if uuids:
                return uuids[0]
        return None

    def count_states(self) -> dict[str, int]:
        return dict(self.present().order_by().values_list("state").annotate(Count("pk")))

    def latest_changes(self) -> dict[str, tuple[int, datetime | None]]:
        """Return the number of actions in each state, and the time of their latest change.

        One of the values differs after each change, also if the later of two changes was committed first.
        """
        by_state = self.present().order_by().values_list("state").annotate(Count("pk"), Max("updated_at"))
        return {state: (number, latest) for state, number, latest in by_state}

    def with_first_parents(self, most: int = 3) -> Self:
        """Add ``parent_count``, and the links to a few parents of each as ``first_parents``, in one more query.

        Only the columns of the parents that name them are read.
        """
        links = self.model._meta.get_field("parent_links").related_model.objects
        parent_links = links.filter(child=OuterRef("pk")).order_by().values("child")
        number = Coalesce(Subquery(parent_links.annotate(number=Count("pk")).values("number")), 0)
        named = ("child", "parent__uuid", "parent__action_type", "parent__input_parameters")
        first = links.order_by("pk").select_related("parent").only(*named)[:most]
        prefetch = Prefetch("parent_links", first, to_attr="first_parents")
        return self.annotate(parent_count=number).prefetch_related(prefetch)

    def abort_waiting(self) -> int:
        """Request the abortion of actions that wait for derived ones, in one statement, and return their number."""
        waiting = self.present().filter(state__in=self.model.sources("abort_waiting"), has_derived=True)
        return waiting.update(state=self.model.State.CANCELLING, control=None, updated_at=timezone.now())

    def depending_on(self, action: Any) -> Self:
        """Select the pending actions that depend on an action, directly or indirectly."""
        links = self.model._meta.get_field("parent_links").related_model
        quote = connection.ops.quote_name
        names = {"action": quote(self.model._meta.db_table), "link": quote(links._meta.db_table)}
        pending = str(self.model.State.PENDING)
        return self.pending().filter(pk__in=RawSQL(DEPENDING.format(**names), [action.pk, pending, pending]))  # noqa: S611

    def planned_by(self, origins: Sequence[int], state: str | None = None) -> Self:
        """Select the pending planned actions of these origins, directly or indirectly.

        With another ``state``, select the actions in that state, except those that a user skipped individually.
        """
        quote, state = connection.ops.quote_name, str(state or self.model.State.PENDING)
        names = {"action": quote(self.model._meta.db_table), "origins": ", ".join(["%s"] * len(origins))}
        planned = RawSQL(PLANNED.format(**names), [*origins, state, state])  # noqa: S611
        return self.filter(pk__in=planned, state=state) if origins else self.none()

    def restorable(self) -> Self:
        """Select the actions that a user or an exclusion skipped, as `may_be_restored` does for one action."""
        return self.present().filter(RESTORABLE)

    def prunable(self) -> Self:
        """Select the actions of plans that have not begun, whose actions can be skipped and restored."""
        return self.present().filter(action_plan__state__in=PRUNABLE_PLAN)

    def count_offered(self) -> dict[str, int]:
        """Return the number of actions that can be skipped, and that can be restored, if their plan allows it."""
        pending = Count("pk", filter=Q(state=PENDING))
        return self.present().aggregate(skippable=pending, restorable=Count("pk", filter=RESTORABLE))

    def end_as(self, state: str, message: str) -> int:
        """End these actions, which have not begun, in a state, with one statement, and return their number."""
        failed = {"outputs": {"error": message}} if state == self.model.State.FAILED else {}
        return self.update(state=state, status_message=cut(message), control=None, updated_at=timezone.now(), **failed)

    def end_silently(self, message: str) -> None:
        """End the actions that have not ended, even if their rows are invalid, without notifications.

        Actions that had begun become FAILED, the others CANCELLED.
        """
        states, now = self.model.State, timezone.now()
        ends = ((states.FAILED, self.model.BEGUN, now), (states.CANCELLED, self.model.sources("cancel"), None))
        for state, sources, end_time in ends:
            rows = self.present().filter(state__in=sources)
            columns = {"state": state, "status_message": cut(message), "control": None, "updated_at": now}
            QuerySet.update(rows, end_time=end_time, **columns)

    def restore(self) -> int:
        """Make skipped actions PENDING again, in one statement, and return their number."""
        pending = self.model.State.PENDING
        return self.update(state=pending, status_message=None, reason="", updated_at=timezone.now())

    def cancel_pending(self, message: str) -> int:
        """Cancel the pending actions, in one statement, and return their number."""
        return (
            self.present().filter(state__in=self.model.sources("cancel")).end_as(self.model.State.CANCELLED, message)
        )
