"""`ActionEvent`, the record of one phase of an action."""

from django.db import models
from django.utils import timezone

from actions.models.actions import Action
from watcher_site.messages import STATUS_MESSAGE_LENGTH


class ActionEvent(models.Model):
    """One phase of an action: its start and end, its host, and its result.

    ``details`` is described in docs/compatibility.md, "Event details".
    """

    class Result(models.TextChoices):
        SUCCESS = "Success"
        SKIPPED = "Skipped"
        CANCELLED = "Cancelled"
        ERROR = "Error"
        RETRY = "Retry"
        WAITING = "Waiting"

    # The details of these are only for users who may see details; those of others are also in the status message.
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
