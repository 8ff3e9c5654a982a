"""The history of operations on servers, Nova's *instance actions*.

See docs/compatibility.md, "Instance actions and events".
"""

from typing import Any, Self
from uuid import UUID

from django.db import models
from django.db.models import Case, Exists, OuterRef, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from watcher_site.database.writes import WrittenOnce

ERROR = "Error"


class InstanceActionQuerySet(models.QuerySet[Any]):
    def of(self, server: UUID) -> Self:
        """Select the operations on one server, which may be deleted, the newest first."""
        return self.filter(server_uuid=server).order_by("-start_time", "-pk")

    def in_full(self) -> Self:
        """Add the columns ``changed_at``, ``by``, ``project`` and ``outcome``, from the action and its plan."""
        events: Any = self.model._meta.get_field("action").related_model._meta.get_field("events").related_model
        failed = Exists(events.objects.filter(action=OuterRef("action"), result__in=events.FAULTS))
        return self.annotate(
            changed_at=Coalesce("action__updated_at", "updated_at", "start_time"),
            by=Coalesce("user_id", "action__action_plan__started_by"),
            project=Coalesce("project_id", "action__action_plan__project_id"),
            outcome=Case(When(failed, then=Value(ERROR)), default="message"),
        )


class InstanceAction(WrittenOnce, models.Model):
    """An operation on a server, by a user or by a plan. Its events are those of its action.

    It is written with the user's request, or else in the commit in which the action begins; only once, even if the
    action begins again. It remains when the server is deleted and when the plan is purged.
    """

    server_uuid = models.UUIDField()
    action = models.ForeignKey(
        "actions.Action", models.SET_NULL, null=True, db_index=False, related_name="instance_actions"
    )
    verb = models.CharField(max_length=64, help_text="Nova's name of the operation: create, live-migration, rebuild …")
    request_id = models.CharField(
        max_length=64, help_text="id of the request, or an id derived from the UUID of the action"
    )
    user_id = models.CharField(
        max_length=255, null=True, help_text="the user who requested the operation; null: the user of the plan"
    )
    project_id = models.CharField(
        max_length=255, null=True, help_text="project of the request; null: the project of the plan"
    )
    start_time = models.DateTimeField(default=timezone.now)
    # A copy of the action and its events, made before these are purged.
    updated_at = models.DateTimeField(null=True, editable=False)
    message = models.CharField(max_length=64, null=True, editable=False)
    kept_events = models.JSONField(null=True, editable=False)

    objects = InstanceActionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint("server_uuid", "request_id", name="instance_action_request"),
            models.UniqueConstraint("action", "server_uuid", name="instance_action_once"),
        ]
        indexes = [
            # The operations on a server are listed with the newest first.
            models.Index("server_uuid", "start_time", "id", name="instance_action_start_time"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} of server {self.server_uuid}"


def request_id_of(action: UUID) -> str:
    """Return the request id of an operation without its own request, derived from the action's UUID."""
    return f"req-{action}"
