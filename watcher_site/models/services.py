"""The processes of the site, with their leases."""

from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models, transaction
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from watcher_site.database.records import NullsFirst, RecordQuerySet
from watcher_site.messages import STATUS_MESSAGE_LENGTH, StoredMessage, translate_message

SERVICE_PROBLEM = StoredMessage(
    _("%(service)s on %(host)s: %(problem)s"), {"service": r"watcher-[\w-]+"}, problem=translate_message
)
SERVICE_BEHIND = StoredMessage(_("%(service)s on %(host)s is %(seconds)s seconds behind the cloud."))
ACTIVE, FAILED = "ACTIVE", "FAILED"
LATE = 60
"""The number of seconds by which a listener may lag behind the cloud before this is reported as a problem."""
REPLACED = "REPLACED"
"""The `Service.told_status` of a service that was reported as FAILED, after its successor has taken over the report.
"""


class ServiceQuerySet(RecordQuerySet):
    def active(self) -> Self:
        """Select the services whose last heartbeat is at most `settings.SERVICE_DOWN_TIME` seconds old."""
        return self.present().filter(last_seen_up__gte=self.model.heartbeat_deadline())

    def appliers(self) -> Self:
        return self.filter(name=self.model.APPLIER)

    def workers(self) -> Self:
        return self.filter(name=self.model.WORKER)

    def missing(self) -> Self:
        """Select the services whose lease has expired: other processes may take over their work."""
        return self.exclude(pk__in=self.model.objects.active().values("pk"))

    def lost(self) -> Self:
        """Select the services whose lease expired without a clean stop: their process died, is paused or hangs."""
        return self.present().missing()

    def idle(self) -> Self:
        """Select the services that own no work: no row of a higher app refers to them."""
        return self.filter(**{f"{relation.name}__isnull": True for relation in self.model._meta.related_objects})

    def remove_gone_services(self) -> int:
        """Delete the services whose lease has expired and that own no work."""
        return self.missing().idle().soft_delete()

    def of(self, name: str, host: str) -> Self:
        return self.filter(name=name, host=host)


class Service(models.Model):
    """A running process such as an applier, as ``GET /v1/services`` shows it, and the lease on its work.

    Each process has one row. Work refers to the row of its owner, and the last heartbeat of that row renews the lease.
    """

    DECISION_ENGINE = "watcher-decision-engine"
    APPLIER = "watcher-applier"
    WORKER = "watcher-worker"
    RELAY = "watcher-relay"
    LISTENER = "watcher-listener"

    name = models.CharField(max_length=255)
    host = models.CharField(max_length=255)
    last_seen_up = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(null=True, editable=False)
    deleted_at = models.DateTimeField(null=True, editable=False)
    told_status = models.CharField(
        max_length=10, null=True, editable=False, help_text="the status in the last notification"
    )
    lag = models.FloatField(null=True, editable=False, help_text="seconds by which a listener lags behind the cloud")
    handled = models.BigIntegerField(
        null=True, editable=False, help_text="number of messages that a listener has processed"
    )
    skipped = models.BigIntegerField(
        null=True, editable=False, help_text="number of these messages that it could not read or store"
    )
    problem = models.CharField(
        max_length=STATUS_MESSAGE_LENGTH,
        null=True,
        editable=False,
        help_text="reason for which a listener receives no messages",
    )

    objects = ServiceQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("name", "id", name="service_name"),
            models.Index("host", "id", name="service_host"),
            models.Index(NullsFirst("last_seen_up"), "id", name="service_last_seen_up"),
            models.Index("created_at", "id", name="service_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="service_updated_at"),
        ]

    def __str__(self) -> str:
        return f"{self.name} on {self.host}"

    @staticmethod
    def heartbeat_deadline() -> datetime:
        """Return the earliest time of the last heartbeat of an active service."""
        return timezone.now() - timedelta(seconds=settings.SERVICE_DOWN_TIME)

    @staticmethod
    def last_heartbeat_expression() -> Coalesce:
        return Coalesce("last_seen_up", "updated_at", "created_at")

    @property
    def status(self) -> str:
        seen = self.last_seen_up or self.updated_at or self.created_at
        return ACTIVE if seen >= self.heartbeat_deadline() else FAILED

    @property
    def lag_problem(self) -> str | None:
        """Return the reason why an active listener does not keep up with the cloud, or None if it does."""
        if self.status != ACTIVE:
            return None
        if self.problem:
            return SERVICE_PROBLEM.fill(service=self.name, host=self.host, problem=self.problem)
        if (self.lag or 0) > LATE:
            return SERVICE_BEHIND.fill(service=self.name, host=self.host, seconds=f"{self.lag:.0f}")
        return None

    @classmethod
    def register(cls, name: str, host: str) -> "Service":
        """Create the row of a process that starts.

        Existing rows are not reused: a paused process may continue at any moment, and its writes are guarded by its
        own row. Rows of ended processes with the same name and host are deleted.
        """
        service = cls.objects.create(name=name, host=host, last_seen_up=timezone.now())
        service.clear_failed_status()
        cls.objects.of(name, host).remove_gone_services()
        return service

    def beat(self) -> bool:
        """Write a heartbeat, and return whether the row still exists.

        Rows of ended processes with the same name and host that own no work are deleted.
        """
        now = timezone.now()
        if not type(self).objects.present().filter(pk=self.pk).update(last_seen_up=now, updated_at=now):
            return False
        self.clear_failed_status()
        type(self).objects.of(self.name, self.host).remove_gone_services()
        return True

    @transaction.atomic
    def clear_failed_status(self) -> None:
        """Take over the reported FAILED status of earlier processes of the same name and host.

        Receivers of notifications identify a service by its name and host: the next notification reports it as ACTIVE.
        Of several successors, only the first takes the status over.
        """
        before = type(self).objects.of(self.name, self.host).filter(pk__lt=self.pk, told_status=FAILED).missing()
        if before.update(told_status=REPLACED):
            type(self).objects.filter(pk=self.pk).update(told_status=FAILED)

    def report(self, lag: float, handled: int, skipped: int, problem: str | None) -> None:
        """Store the progress of a listener."""
        columns = {"lag": lag, "handled": handled, "skipped": skipped, "problem": problem}
        type(self).objects.filter(pk=self.pk).update(**columns)

    def retire(self) -> None:
        """Delete the row of this process when it ends. Work that still refers to it has no owner."""
        type(self).objects.filter(pk=self.pk).soft_delete()
