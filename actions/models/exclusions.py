"""Exclusion rules as users wrote them, and the mark that changes with any of them."""

from typing import Any, Self
from uuid import uuid4

from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper

from watcher_site.database.records import NullsFirst, Record, RecordQuerySet
from watcher_site.validation import find_named

# Names are not cut in messages of actions.
NAME_LENGTH = 100
TEXT_LENGTH = 255


class ExclusionQuerySet(RecordQuerySet):
    def named(self, identifier: str) -> Self:
        """Select by UUID, or by name ignoring case."""
        found: Self = find_named(self, identifier)
        return found

    def enabled(self) -> Self:
        return self.present().filter(enabled=True)


class Exclusion(Record):
    """A rule that prevents the execution of actions, with their targets and the hours.

    An action is excluded if its type is one of ``action_types``, or these are empty, and if it affects one object of
    each kind in ``targets`` (`actions.exclusions.targets`). A rule applies while it is ``enabled``, until
    ``expires_at``, and within its ``window`` if it has one.
    """

    name = models.CharField(max_length=NAME_LENGTH)
    reason = models.CharField(max_length=TEXT_LENGTH, default="", blank=True)
    owner = models.CharField(max_length=TEXT_LENGTH, help_text="the person or team that is responsible for the rule")
    action_types = models.JSONField(default=list)
    targets = models.JSONField(default=dict, help_text="identifiers of objects by kind")
    window = models.JSONField(null=True, help_text="the hours in which the rule applies; null: all")
    zone = models.CharField(max_length=64, default="UTC", help_text="time zone of the window")
    expires_at = models.DateTimeField(null=True)
    enabled = models.BooleanField(default=True, db_default=True)

    objects = ExclusionQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index("name", "id", name="exclusion_name_sort"),
            models.Index("owner", "id", name="exclusion_owner"),
            models.Index(Upper("owner"), "id", name="exclusion_any_case_owner"),
            models.Index(NullsFirst("expires_at"), "id", name="exclusion_expires_at"),
            models.Index("enabled", "id", name="exclusion_enabled"),
            models.Index("created_at", "id", name="exclusion_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="exclusion_updated_at"),
        ]
        constraints = [models.UniqueConstraint(Upper("name"), condition=Q(deleted_at=None), name="exclusion_name")]

    def __str__(self) -> str:
        return self.name


class ExclusionRevision(models.Model):
    """The revision of the set of rules: one row, or none before the first rule is created.

    A process that caches the rules compares the mark in the statement that begins an action. Each change replaces the
    mark in its transaction; marks never repeat, even after a rollback.
    """

    mark = models.UUIDField()

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="exclusion_revision_once")]

    def __str__(self) -> str:
        return str(self.mark)

    @staticmethod
    def renew() -> None:
        """Replace the mark, so that all processes read the rules again.

        Concurrent changes of rules wait for each other here.
        """
        row = ExclusionRevision(pk=1, mark=uuid4())
        upsert: dict[str, Any] = {"update_conflicts": True, "unique_fields": ["id"], "update_fields": ["mark"]}
        ExclusionRevision.objects.bulk_create([row], **upsert)
