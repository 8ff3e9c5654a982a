"""Notifications of the outbox, subscriptions, and pending deliveries."""

from datetime import datetime
from typing import Any, Self
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Upper
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from watcher_site.database.records import NullsFirst, Record, RecordQuerySet
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut
from watcher_site.models.services import Service
from watcher_site.validation import REQUEST_ID_LENGTH, find_named

NAME_LENGTH = 255
URL_LENGTH = 2000
TYPE_LENGTH = 63


class NotificationQuerySet(models.QuerySet[Any]):
    def undispatched(self) -> Self:
        """Select the notifications for which no relay has created deliveries yet."""
        return self.filter(is_dispatched=False).order_by("pk")

    def settled(self) -> Self:
        """Select the dispatched notifications without remaining deliveries."""
        return self.filter(~Exists(Delivery.objects.filter(notification=OuterRef("pk"))), is_dispatched=True)


class Notification(models.Model):
    """An event of an object, written into the outbox in the transaction of the change.

    The primary keys of an object's notifications increase in the order of its changes, because a change locks the
    object's row first.
    """

    # No query looks up notifications by UUID, and an index would slow down changes.
    uuid = models.UUIDField(default=uuid4, editable=False)
    kind = models.CharField(max_length=TYPE_LENGTH, help_text="kind of the object, which determines the payload")
    event_type = models.CharField(max_length=TYPE_LENGTH)
    priority = models.CharField(max_length=7)
    object_uuid = models.UUIDField()
    old_state = models.CharField(
        max_length=20, null=True, help_text="state before the change; null: the state did not change"
    )
    snapshot = models.JSONField(help_text="the state of the object after the change")
    fault = models.JSONField(null=True, help_text="the error, in events that report one")
    host = models.CharField(max_length=NAME_LENGTH)
    person = models.CharField(
        max_length=NAME_LENGTH, null=True, help_text="the user who caused the change; null: the site itself"
    )
    request_id = models.CharField(
        max_length=REQUEST_ID_LENGTH,
        default="",
        db_default="",
        help_text="id of the request that caused the change, also by an audit or a plan; empty: none did",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    is_dispatched = models.BooleanField(default=False)

    objects = NotificationQuerySet.as_manager()

    class Meta:
        default_permissions = ("view",)
        indexes = [
            # Relays poll for undispatched rows.
            models.Index("id", name="notification_undispatched", condition=Q(is_dispatched=False)),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} of {self.object_uuid}"


class SubscriptionQuerySet(RecordQuerySet):
    def named(self, identifier: str) -> Self:
        """Select by UUID, or by name ignoring case."""
        found: Self = find_named(self, identifier)
        return found

    def enabled(self) -> Self:
        return self.present().filter(enabled=True)


class Subscription(Record):
    """A receiver of notifications: a webhook, addresses of e-mail, or an incoming webhook of a chat."""

    class Kind(models.TextChoices):
        WEBHOOK = "webhook", _("Webhook")
        MAIL = "mail", _("E-mail")
        SLACK = "slack", _("Slack")

    name = models.CharField(max_length=NAME_LENGTH)
    kind = models.CharField(max_length=15, choices=Kind, default=Kind.WEBHOOK, db_default=Kind.WEBHOOK)
    url = models.CharField(
        max_length=URL_LENGTH, help_text="URL of the receiver: for slack only scheme and host; for mail empty"
    )
    addresses = models.JSONField(null=True, help_text="addresses of e-mail; null for other kinds")
    secret = models.TextField(
        editable=False,
        help_text="encrypted: the key that signs notifications to a webhook, or the URL of slack; empty for mail",
    )
    event_types = models.JSONField(default=list, help_text="patterns such as action.* or *.error")
    enabled = models.BooleanField(default=True)
    # Written only by relays. Changes of a subscription do not affect these, except that they reset a pause.
    failures = models.PositiveIntegerField(
        default=0, editable=False, help_text="number of consecutive failed deliveries"
    )
    due_time = models.DateTimeField(
        null=True, editable=False, help_text="time before which no notification is sent to the receiver"
    )
    last_success = models.DateTimeField(null=True, editable=False)
    problem = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True, editable=False)

    objects = SubscriptionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(Upper("name"), condition=Q(deleted_at=None), name="subscription_any_case_name"),
        ]
        indexes = [
            models.Index("name", "id", name="subscription_name_sort"),
            models.Index("enabled", "id", name="subscription_enabled"),
            models.Index("created_at", "id", name="subscription_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="subscription_updated_at"),
        ]

    def __str__(self) -> str:
        return self.name


class DeliveryQuerySet(RecordQuerySet):
    def present(self) -> Self:
        """Return all deliveries: rows are deleted when the notification was sent."""
        return self.all()

    def pending(self) -> Self:
        return self.filter(state=self.model.State.PENDING)

    def undelivered(self) -> Self:
        """Select the dead letters."""
        return self.filter(state=self.model.State.UNDELIVERED)

    def awaited(self) -> Self:
        """Select the pending deliveries to enabled receivers."""
        return self.pending().exclude(self.model.is_off())

    def stuck(self) -> Self:
        """Select the deliveries that stay undelivered until a user intervenes."""
        given_up, waits = (Q(state=state) for state in (self.model.State.UNDELIVERED, self.model.State.PENDING))
        return self.filter(given_up | waits & self.model.is_off())

    def unclaimed(self) -> Self:
        """Select the deliveries that no living relay is sending."""
        return self.exclude(relay__in=Service.objects.active().values("pk"))

    def due(self, now: datetime) -> Self:
        return self.filter(Q(due_time=None) | Q(due_time__lte=now))

    def retry_at(self, problem: str, until: datetime) -> int:
        """Defer these deliveries until a time, with the problem as the reason."""
        return self.write_attempt(problem, state=self.model.State.PENDING, due_time=until)

    def give_up(self, problem: str) -> int:
        """Make these deliveries dead letters after another attempt, with the reason, and return their number."""
        return self.write_attempt(problem, state=self.model.State.UNDELIVERED, due_time=None)

    def give_up_without_attempt(self, problem: str) -> int:
        """Make these deliveries dead letters, because their receiver does not respond, and return their number."""
        return self.write(problem, state=self.model.State.UNDELIVERED, due_time=None)

    def write_attempt(self, problem: str, **columns: Any) -> int:
        return self.write(problem, attempts=F("attempts") + 1, **columns)

    def write(self, problem: str, **columns: Any) -> int:
        return self.update(problem=cut(problem), relay=None, updated_at=timezone.now(), **columns)

    def resend(self) -> int:
        """Make dead letters pending again, and return their number."""
        return self.undelivered().update(
            attempts=0, due_time=None, updated_at=timezone.now(), state=self.model.State.PENDING
        )


class Delivery(models.Model):
    """A notification that has to be sent to one receiver. The row is deleted when it was sent."""

    class State(models.TextChoices):
        PENDING = "PENDING"
        UNDELIVERED = "UNDELIVERED"

    uuid = models.UUIDField(default=uuid4, unique=True, editable=False)
    notification = models.ForeignKey(Notification, models.CASCADE, related_name="deliveries")
    subscription = models.ForeignKey(
        Subscription,
        models.CASCADE,
        null=True,
        related_name="deliveries",
        db_index=False,
        help_text="null: the message broker",
    )
    line = models.UUIDField(
        editable=False, help_text="UUID of the object: its notifications are sent to a receiver in order"
    )
    state = models.CharField(max_length=15, choices=State, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    due_time = models.DateTimeField(null=True, help_text="earliest time of the next attempt")
    problem = models.CharField(
        max_length=STATUS_MESSAGE_LENGTH, null=True, help_text="reason for the failure of the last attempt"
    )
    relay = models.ForeignKey(
        Service,
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="deliveries",
        db_constraint=False,
        db_index=False,
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(null=True, editable=False)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "deliveries"
        default_permissions = ("view", "delete")
        permissions = [("resend_delivery", "Can resend delivery")]
        indexes = [
            # A relay reads the oldest pending deliveries of a receiver.
            models.Index("subscription", "id", name="delivery_pending", condition=Q(state="PENDING")),
            # The list of undelivered notifications.
            models.Index("state", "id", name="delivery_state"),
            models.Index("subscription", "state", "id", name="delivery_subscription"),
            models.Index("created_at", "id", name="delivery_created_at"),
            models.Index("attempts", "id", name="delivery_attempts"),
            models.Index("relay", name="delivery_relay", condition=Q(relay__isnull=False)),
        ]

    @staticmethod
    def is_off() -> Q:
        """Return the condition of a disabled receiver: a disabled subscription, or the broker if none is set."""
        is_off = Q(subscription__isnull=False) & ~Q(subscription__enabled=True, subscription__deleted_at=None)
        return is_off if settings.NOTIFICATION_URL else is_off | Q(subscription=None)

    def __str__(self) -> str:
        return f"{self.notification} to {self.subscription or 'the message broker'}"
