"""Profiles, which describe the servers of clusters."""

from collections.abc import Collection
from typing import Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper

from watcher_site.database.records import NullsFirst, Record, RecordQuerySet
from watcher_site.validation.names import find_named

NAME_LENGTH = 255


def names_among(names: Collection[str]) -> Q:
    """Return the condition that a record has one of these names, ignoring case."""
    return Q(*(Q(name__iexact=name) for name in names), _connector=Q.OR)


class ProfileQuerySet(RecordQuerySet):
    def named(self, identifier: str) -> Self:
        """Select by UUID, or by name ignoring case."""
        found: Self = find_named(self, identifier)
        return found


class Profile(Record):
    """A description of servers to create: ``spec`` has their flavor, and optionally their image and metadata."""

    class Type(models.TextChoices):
        SERVER = "os.nova.server-1.0"

    name = models.CharField(max_length=NAME_LENGTH)
    type = models.CharField(max_length=255, choices=Type, default=Type.SERVER)
    spec = models.JSONField()
    metadata = models.JSONField(default=dict, blank=True, help_text="what people note about the profile itself")

    objects = ProfileQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index("name", "id", name="profile_name_sort"),
            models.Index("created_at", "id", name="profile_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="profile_updated_at"),
        ]
        constraints = [models.UniqueConstraint(Upper("name"), condition=Q(deleted_at=None), name="profile_name")]

    def __str__(self) -> str:
        return self.name
