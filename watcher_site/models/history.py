"""The history of events. Rows are only inserted, and deleted after the retention time."""

from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import UUID, uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

TEXT_LENGTH = 255
EVENT_LENGTH = 63
LARGEST_KEY = 2**63 - 1
# An entry gets its time in a process, and its key in the database. Of two entries closer than this, the earlier one
# may have the greater key. Clocks of machines may differ by as much.
TOLERANCE = timedelta(hours=1)
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


# Operations on a plan that affect each of its actions.
EVENTS_ON_ALL_ACTIONS = ("action_plan.signal", "action_plan.cancel")


class HistoryQuerySet(models.QuerySet[Any]):
    def present(self) -> Self:
        """Return all entries, because history has no deleted rows."""
        return self.all()

    def expired(self) -> Self:
        """Select the entries that are older than the retention time."""
        if not settings.HISTORY_AGE:
            return self.none()
        return self.filter(created_at__lt=timezone.now() - settings.HISTORY_AGE)

    def since(self, moment: datetime) -> Self:
        """Select the entries since a moment.

        Lists and exports are ordered by key. A bound of the keys keeps PostgreSQL from reading all entries up to the
        moment to find the first ones.
        """
        earlier = self.model.objects.filter(created_at__lt=max(moment, FIRST + TOLERANCE) - TOLERANCE).order_by(
            "-created_at", "-pk"
        )
        first = Coalesce(Subquery(earlier.values("pk")[:1]), 0)
        return self.filter(created_at__gte=moment, pk__gt=first)

    def before(self, moment: datetime) -> Self:
        """Select the entries before a moment, with a bound of the keys as in `since`."""
        later = self.model.objects.filter(created_at__gte=min(moment, LAST - TOLERANCE) + TOLERANCE).order_by(
            "created_at", "pk"
        )
        end = Coalesce(Subquery(later.values("pk")[:1]), Value(LARGEST_KEY, models.BigIntegerField()))
        return self.filter(created_at__lt=moment, pk__lt=end)

    def about(self, target: UUID) -> Self:
        """Select the entries about an object and about the objects within it, such as the actions of a plan."""
        return self.filter(Q(object_uuid=target) | Q(within=target))

    def about_action(self, action: UUID, plan: UUID) -> Self:
        """Select the entries about an action, about signals to its plan, and about the plan's cancellation."""
        return self.filter(
            Q(object_uuid=action) | Q(within=action) | Q(object_uuid=plan, deed__in=EVENTS_ON_ALL_ACTIONS)
        )


class HistoryEntry(models.Model):
    """An operation of a user, completed or refused.

    Names are stored as they were, since the user and the object may be deleted. ``deed`` is ``<object>.<verb>``, such
    as ``action_plan.start``; ``within`` is the object that contains this one, such as the plan of an action. Keystone
    users have a ``user_id``, because names are unique only within a domain.
    """

    class Outcome(models.TextChoices):
        SUCCESS = "success"
        REFUSED = "refused"

    uuid = models.UUIDField(default=uuid4, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    user = models.CharField(max_length=TEXT_LENGTH, default="")
    user_id = models.CharField(
        max_length=TEXT_LENGTH, null=True, help_text="id of the user in Keystone; null: an account of the site"
    )
    project_id = models.CharField(max_length=TEXT_LENGTH, default="")
    request_id = models.CharField(max_length=TEXT_LENGTH, default="")
    deed = models.CharField(max_length=EVENT_LENGTH)
    outcome = models.CharField(max_length=15, choices=Outcome, default=Outcome.SUCCESS)
    object_type = models.CharField(max_length=EVENT_LENGTH)
    object_uuid = models.UUIDField(null=True)
    object_name = models.CharField(max_length=TEXT_LENGTH, default="")
    within = models.UUIDField(null=True)
    message = models.CharField(max_length=TEXT_LENGTH, default="")
    details = models.JSONField(default=dict)

    objects = HistoryQuerySet.as_manager()

    class Meta:
        verbose_name = "history entry"
        verbose_name_plural = "history entries"
        default_permissions = ("view",)
        indexes = [
            # The filters of lists, each with the order of all lists.
            models.Index("created_at", "id", name="history_created_at"),
            models.Index("user", "id", name="history_user"),
            models.Index("user_id", "id", name="history_user_id", condition=Q(user_id__isnull=False)),
            models.Index("project_id", "id", name="history_project"),
            models.Index("request_id", "id", name="history_request"),
            models.Index("deed", "id", name="history_deed"),
            models.Index("outcome", "id", name="history_outcome"),
            models.Index("object_type", "id", name="history_object_type"),
            models.Index("object_name", "id", name="history_object_name"),
            models.Index("object_uuid", "id", name="history_object"),
            models.Index("within", "id", name="history_within", condition=Q(within__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.deed} by {self.user}"
