"""Permanent removal of objects that were deleted or ended before a time, with all objects below them.

See docs/compatibility.md, "Deletion and purging".
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Coalesce
from django.db.models.lookups import LessThan
from django.utils import timezone

from actions.models import Action
from actions.models.exclusions import Exclusion
from actions.models.instance_actions import InstanceAction
from actions.server_history import expired_operations
from audits.models import Audit, AuditTemplate, Goal, Strategy
from cluster.models import Sample
from cluster.purging import is_referenced, order_removable, removable
from plans.models import ActionPlan
from plans.purging import remove_plans
from watcher_site.accounts.tokens import delete_expired_tokens
from watcher_site.models import HistoryEntry, Notification, Service
from watcher_site.models.history import HistoryQuerySet
from watcher_site.notifications.deliveries import settled_notifications
from watcher_site.refusals import Invalid

# The rows of other kinds that one transaction removes.
BATCH = 200
# A cutoff before which nothing was deleted.
NEVER = datetime(1970, 1, 1, tzinfo=UTC)
Kind = tuple[str, Callable[[], QuerySet[Any]]]
"""The title of a kind of rows, and a function that returns the rows to remove."""
# Kinds whose rows refer to each other. The removal of a row changes or removes the rows that refer to it.
AUDIT_KINDS = {"Action Plans and Actions", "Audits", "Audit Templates", "Strategies", "Goals"}


@dataclass(frozen=True)
class Purge:
    """The rows to purge: those deleted until `cutoff`, and the rows below them that are not pending or running.

    Below a goal are its strategies, templates and audits, below an audit its plans, below a plan its actions. A goal
    or a strategy is kept as long as a remaining row refers to it. The same applies to clusters, policies, profiles and
    stacks. Ended plans and audits are removed by the ages in the settings, independent of `cutoff`.

    Args:
        goal: the UUID or name of a deleted goal. Then only this goal and the objects below it are removed.
        orphans: whether plans created until `cutoff` are removed as well if their audit is no longer in the database.
    """

    cutoff: datetime
    goal: str | None = None
    orphans: bool = True

    @classmethod
    def by_age(cls) -> "Purge":
        """Return the purge by the ages in the settings alone."""
        return cls(timezone.now() - settings.DELETED_AGE if settings.DELETED_AGE else NEVER, orphans=False)

    def check(self) -> None:
        """Raise `Invalid` if a goal is given and is not a deleted goal."""
        if self.goal is not None and not self.deleted_goals().exists():
            raise Invalid(f"goal: there is no deleted goal {self.goal}.")

    def deleted_goals(self) -> QuerySet[Goal]:
        deleted = Goal.objects.filter(deleted_at__isnull=False)
        return deleted if self.goal is None else deleted.named(self.goal)

    def expired_goals(self) -> QuerySet[Goal]:
        return self.deleted_goals().filter(deleted_at__lte=self.cutoff)

    def expired(self) -> Q:
        """Return the condition for rows that were deleted themselves; none if a goal is given."""
        return Q(deleted_at__lte=self.cutoff) if self.goal is None else Q(pk__in=[])

    def below_goals(self) -> Q:
        return Q(goal__in=self.expired_goals().values("pk"))

    def plans(self) -> QuerySet[ActionPlan]:
        condition = self.expired() | Q(audit__in=self.deleted_audits().values("pk")) | self.ended_plans()
        if self.orphans and self.goal is None:
            condition |= Q(audit=None, created_at__lte=self.cutoff)
        return ActionPlan.objects.filter(condition, state__in=ActionPlan.DELETABLE)

    def ended_plans(self) -> Q:
        ended = ended_before(settings.ACTION_PLAN_AGE, "end_time", "updated_at", "created_at")
        return ended & Q(state__in=ActionPlan.FINAL) if self.goal is None else Q(pk__in=[])

    def audits(self) -> QuerySet[Audit]:
        """Return the deleted audits, and the ended audits to which no remaining plan refers."""
        ended = self.ended_audits() & ~is_referenced("audit", ActionPlan, self.plans())
        return Audit.objects.filter(Q(pk__in=self.deleted_audits().values("pk")) | ended)

    def ended_audits(self) -> Q:
        """Return the condition for ended audits. EVENT audits that succeeded can be triggered again, and are kept."""
        ended = ended_before(settings.AUDIT_AGE, "updated_at", "created_at") & Q(state__in=Audit.FINAL)
        ended &= ~Q(audit_type=Audit.Type.EVENT, state=Audit.State.SUCCEEDED)
        return ended if self.goal is None else Q(pk__in=[])

    def deleted_audits(self) -> QuerySet[Audit]:
        return Audit.objects.filter(self.expired() | self.below_goals(), state__in=Audit.DELETABLE)

    def audit_templates(self) -> QuerySet[AuditTemplate]:
        return AuditTemplate.objects.filter(self.expired() | self.below_goals())

    def strategies(self) -> QuerySet[Strategy]:
        return Strategy.objects.filter(self.expired() | self.below_goals()).exclude(
            is_referenced("strategy", Audit, self.audits())
            | is_referenced("strategy", AuditTemplate, self.audit_templates())
            | is_referenced("strategy", ActionPlan, self.plans())
        )

    def goals(self) -> QuerySet[Goal]:
        # There are few strategies. With a subquery, PostgreSQL would compile the statement for seconds.
        strategies = list(self.strategies().values_list("pk", flat=True))
        return self.expired_goals().exclude(
            is_referenced("goal", Audit, self.audits())
            | is_referenced("goal", AuditTemplate, self.audit_templates())
            | is_referenced("goal", Strategy, Strategy.objects.filter(pk__in=strategies))
        )

    def clusters(self) -> dict[str, QuerySet[Any]]:
        """Return the rows of clusters and stacks to remove; none if a goal is given."""
        return removable(self.cutoff) if self.goal is None else {}

    def notifications(self) -> QuerySet[Notification]:
        """Return the notifications to remove, at the latest at the age of undelivered ones; none with a goal."""
        until = max(self.cutoff, timezone.now() - timedelta(days=settings.UNDELIVERED_DAYS))
        return settled_notifications(until) if self.goal is None else Notification.objects.none()

    def operations(self) -> QuerySet[InstanceAction]:
        """Return the operations on servers to remove; none if a goal is given."""
        return expired_operations(self.cutoff) if self.goal is None else InstanceAction.objects.none()

    def exclusions(self) -> QuerySet[Exclusion]:
        """Return the exclusions to remove; none if a goal is given. Actions that they skipped stay skipped."""
        return Exclusion.objects.filter(self.expired())

    def history(self) -> HistoryQuerySet:
        """Return the history entries to remove, by the age in the settings; none if a goal is given."""
        return HistoryEntry.objects.expired() if self.goal is None else HistoryEntry.objects.none()

    def services(self) -> QuerySet[Service]:
        """Return the rows of ended processes to remove; none if a goal is given.

        The row of a process that was paused, and may continue, stays until its lease has expired.
        """
        return Service.objects.filter(self.expired(), last_seen_up__lt=Service.heartbeat_deadline()).idle()

    def samples(self) -> QuerySet[Sample]:
        """Return the samples of metrics to remove, by the age in the settings; none if a goal is given."""
        age = settings.SAMPLE_AGE if self.goal is None else None
        return Sample.objects.filter(time__lt=timezone.now() - age) if age else Sample.objects.none()

    def count(self) -> dict[str, int]:
        """Return the number of rows of each kind to remove, in a fixed number of queries."""
        return {
            "Goals": self.goals().count(),
            "Strategies": self.strategies().count(),
            "Audit Templates": self.audit_templates().count(),
            "Audits": self.audits().count(),
            "Action Plans": self.plans().count(),
            "Actions": Action.objects.filter(action_plan__in=self.plans().values("pk")).count(),
            **{name: rows.count() for name, rows in self.clusters().items()},
            "Server Events": self.operations().count(),
            "Notifications": self.notifications().count(),
            "Exclusions": self.exclusions().count(),
            "Services": self.services().count(),
            "Samples": self.samples().count(),
            "History": self.history().count(),
        }

    def kinds(self) -> list[Kind]:
        """Return the kinds of rows to remove, in an order in which rows that refer to others are removed first."""
        return [
            ("Action Plans and Actions", self.plans),
            ("Audits", self.audits),
            ("Audit Templates", self.audit_templates),
            ("Strategies", self.strategies),
            ("Goals", self.goals),
            *((title, rows.all) for title, rows in (order_removable(self.cutoff) if self.goal is None else [])),
            ("Server Events", self.operations),
            ("Notifications", self.notifications),
            ("Exclusions", self.exclusions),
            ("Services", self.services),
            ("Samples", self.samples),
            ("History", self.history),
        ]

    def remove(self, most: int | None = None) -> int:
        """Remove the rows, and return their number.

        Rows are removed in batches with a transaction each: an interrupted purge can be repeated.

        Args:
            most: the largest number of rows to remove. Either all rows of a plan or none are removed.
        """
        limit: float = inf if most is None else most
        removed = 0
        for _, find in self.kinds():
            rows = find()
            for keys in batches(rows):
                left = limit - removed
                is_plan = rows.model is ActionPlan
                selected = first_that_fit(keys, left) if is_plan else keys[: int(min(left, len(keys)))]
                removed += sum(remove_batch(rows, selected))
                if len(selected) < len(keys):
                    return removed
        return removed


def expired_kinds() -> list[tuple[str, Iterator[int]]]:
    """Return the kinds of rows that are too old by the settings, expired tokens and sessions, for a periodic purge.

    The iterator of a kind removes a batch of its rows, and then returns their number.
    """
    kinds = [(title, remove_in_batches(find)) for title, find in Purge.by_age().kinds()]
    return [*kinds, ("Tokens", remove_tokens()), ("Sessions", remove_sessions())]


def remove_in_batches(find: Callable[[], QuerySet[Any]]) -> Iterator[int]:
    rows = find()
    for keys in batches(rows):
        yield from remove_batch(rows, keys)


def remove_tokens() -> Iterator[int]:
    while number := delete_expired_tokens(BATCH):
        yield number


def remove_sessions() -> Iterator[int]:
    expired = Session.objects.filter(expire_date__lt=timezone.now())
    while keys := list(expired.values_list("pk", flat=True)[:BATCH]):
        yield expired.filter(pk__in=keys).delete()[0]


def is_affected(title: str, failed: str) -> bool:
    """Return whether rows of a kind stay because of an error in the removal of another kind."""
    return title == failed or {title, failed} <= AUDIT_KINDS


def batches(rows: QuerySet[Any]) -> Iterator[list[int]]:
    last = 0
    while keys := list(rows.filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:BATCH]):
        yield keys
        last = keys[-1]


def first_that_fit(keys: list[int], most: float) -> list[int]:
    """Return the first of these plans that have, with their actions, at most ``most`` rows."""
    weighed = ActionPlan.objects.filter(pk__in=keys).annotate(number=Count("actions")).order_by("pk")
    selected: list[int] = []
    for key, actions in weighed.values_list("pk", "number"):
        most -= actions + 1
        if most < 0:
            break
        selected.append(key)
    return selected


def remove_batch(rows: QuerySet[Any], keys: list[int]) -> Iterator[int]:
    """Remove the rows with these keys, and yield the number after each transaction."""
    if rows.model is ActionPlan:
        yield from remove_plans(rows, keys)
    else:
        yield remove_rows(rows, keys)


@transaction.atomic
def remove_rows(rows: QuerySet[Any], keys: list[int]) -> int:
    """Remove the rows with these keys that may still be removed, and return their number."""
    manager = rows.model._default_manager
    list(manager.filter(pk__in=keys).order_by("pk").select_for_update().values_list("pk", flat=True))
    if rows.model is Audit:
        # The references of remaining plans are cleared: their rows are locked in the order of their keys.
        plans = ActionPlan.objects.filter(audit__in=keys).order_by("pk")
        list(plans.select_for_update(no_key=True).values_list("pk", flat=True))
    _, numbers = rows.filter(pk__in=keys).delete()
    return numbers.get(rows.model._meta.label, 0)


def ended_before(age: timedelta, *times: str) -> Q:
    """Return the condition that the first of these times that is not null is older than an age; 0: never."""
    return Q(LessThan(Coalesce(*times), timezone.now() - age)) if age else Q(pk__in=[])
