"""Stacks: named trees of resources, as in OpenStack's orchestration service.

A stack contains resources. A scaling group or a nested stack is a resource with a stack of its own, which contains its
members or resources: the members of a group are ordinary resources.
"""

from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django_fsm import RETURN_VALUE, FSMField, transition

from cluster.models.messages import MARKED_BY_API, OPERATION_COMPLETED, OPERATION_STARTED
from watcher_site.database.records import NullsFirst, RecordQuerySet
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut
from watcher_site.state_machine import ConcurrentTransition, StatefulModel

NAME_LENGTH = 255
# In minutes; the timeout of an action in seconds is a 32-bit integer.
MAX_TIMEOUT = (2**31 - 1) // 60
MARKED = MARKED_BY_API.text
"""The default reason of a mark, which Heat's clients know."""


class Verb(StrEnum):
    """An operation on a stack or a resource: the first part of its status."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class StackStatus(models.TextChoices):
    """The last operation and its result."""

    INIT_COMPLETE = "INIT_COMPLETE"
    CREATE_IN_PROGRESS = "CREATE_IN_PROGRESS"
    CREATE_COMPLETE = "CREATE_COMPLETE"
    CREATE_FAILED = "CREATE_FAILED"
    UPDATE_IN_PROGRESS = "UPDATE_IN_PROGRESS"
    UPDATE_COMPLETE = "UPDATE_COMPLETE"
    UPDATE_FAILED = "UPDATE_FAILED"
    DELETE_IN_PROGRESS = "DELETE_IN_PROGRESS"
    DELETE_FAILED = "DELETE_FAILED"
    DELETE_COMPLETE = "DELETE_COMPLETE"
    CHECK_COMPLETE = "CHECK_COMPLETE"
    CHECK_FAILED = "CHECK_FAILED"


IN_PROGRESS = (StackStatus.CREATE_IN_PROGRESS, StackStatus.UPDATE_IN_PROGRESS, StackStatus.DELETE_IN_PROGRESS)
FAILED = (
    StackStatus.CREATE_FAILED,
    StackStatus.UPDATE_FAILED,
    StackStatus.DELETE_FAILED,
    StackStatus.CHECK_FAILED,
)
DELETING = (StackStatus.DELETE_IN_PROGRESS, StackStatus.DELETE_FAILED, StackStatus.DELETE_COMPLETE)
MARKABLE = tuple(status for status in StackStatus if status not in DELETING)


class StackPart(StatefulModel):
    """The base of stacks and their resources: a status with its reason.

    Only actions that hold the lock of the root stack change it, except for marks, which users set.
    """

    guard_fields = ["status"]
    transition_fields = ["status", "status_reason"]

    name = models.CharField(max_length=NAME_LENGTH)
    status = FSMField(
        max_length=20, choices=StackStatus, default=StackStatus.INIT_COMPLETE, protected=True, editable=False
    )
    status_reason = models.CharField(max_length=STATUS_MESSAGE_LENGTH, default="", editable=False)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name

    @property
    def verb(self) -> str:
        """Return the last operation: INIT, CREATE, UPDATE, DELETE or CHECK."""
        return self.status.partition("_")[0]

    @property
    def is_failed(self) -> bool:
        return self.status in FAILED

    @property
    def is_marked(self) -> bool:
        """Return whether a user marked the object unhealthy."""
        return bool(self.status == StackStatus.CHECK_FAILED)

    @transition(field=status, source="*", target=RETURN_VALUE(*IN_PROGRESS))
    def begin(self, verb: Verb) -> str:
        """Begin an operation, or continue one that another process began. The action holds the lock."""
        self.status_reason = OPERATION_STARTED.fill(operation=verb)
        return StackStatus(f"{verb}_IN_PROGRESS")

    @transition(
        field=status,
        source=[StackStatus.CREATE_IN_PROGRESS, StackStatus.UPDATE_IN_PROGRESS],
        target=RETURN_VALUE(StackStatus.CREATE_COMPLETE, StackStatus.UPDATE_COMPLETE),
    )
    def finish(self) -> str:
        """End the operation with success; a deletion ends with `remove`."""
        self.status_reason = OPERATION_COMPLETED.fill(operation=self.verb)
        return StackStatus(f"{self.verb}_COMPLETE")

    @transition(
        field=status,
        source=IN_PROGRESS,
        target=RETURN_VALUE(StackStatus.CREATE_FAILED, StackStatus.UPDATE_FAILED, StackStatus.DELETE_FAILED),
    )
    def fail(self, reason: str) -> str:
        """End the operation with an error."""
        self.status_reason = cut(reason)
        return StackStatus(f"{self.verb}_FAILED")

    @transition(field=status, source=MARKABLE, target=StackStatus.CHECK_FAILED)
    def mark_unhealthy(self, reason: str = "") -> None:
        """Store a user's mark, or its new reason.

        The caller has locked the row, and checked that no operation holds the lock of the stack.
        """
        self.status_reason = cut(reason or MARKED)

    @transition(field=status, source=StackStatus.CHECK_FAILED, target=StackStatus.CHECK_COMPLETE)
    def mark_healthy(self, reason: str = "") -> None:
        """Remove a user's mark."""
        self.status_reason = cut(reason or MARKED)

    def remove(self) -> None:
        """Mark the row as deleted, after the counterpart in the cloud was deleted.

        Raises:
            ConcurrentTransition: the object is not DELETE_IN_PROGRESS, or was deleted already.
        """
        now = timezone.now()
        deleting = type(self)._default_manager.filter(
            pk=self.pk, deleted_at=None, status=StackStatus.DELETE_IN_PROGRESS
        )
        status, reason = StackStatus.DELETE_COMPLETE, OPERATION_COMPLETED.fill(operation=Verb.DELETE)
        if not deleting.update(status=status, status_reason=reason, deleted_at=now, updated_at=now):
            raise ConcurrentTransition(f"{self._meta.object_name} {self.uuid} is no longer as it was read.")


class StackQuerySet(RecordQuerySet):
    def roots(self) -> Self:
        """Select the root stacks."""
        return self.filter(root=None)

    def tree(self, root: "Stack") -> Self:
        """Select a root stack and its nested stacks, at any depth."""
        return self.filter(Q(pk=root.pk) | Q(root=root.pk))


class Stack(StackPart):
    """A named tree of resources, or the stack within a resource (``parent_resource``)."""

    transition_fields = [*StackPart.transition_fields, "template", "revision", "name", "timeout_mins"]

    project_id = models.CharField(max_length=255, default="", blank=True)
    user_id = models.CharField(max_length=255, default="", blank=True, help_text="the user who requested the stack")
    trust = models.ForeignKey(
        "cluster.Trust",
        models.SET_NULL,
        null=True,
        editable=False,
        related_name="stacks",
        help_text="trust by which the servers are created in the project; only of root stacks",
    )
    template = models.JSONField(default=dict, help_text="the template that describes the desired resources")
    revision = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text="number of operations that began; actions that were planned before the last one are stale",
    )
    timeout_mins = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="timeout of an operation in minutes, without suspended time; null: the default of the site",
    )
    root = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        editable=False,
        related_name="descendants",
        help_text="root of the tree; null: the stack is a root",
    )
    parent_resource = models.ForeignKey(
        "StackResource", models.CASCADE, null=True, editable=False, related_name="nested_stacks"
    )

    objects = StackQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        permissions = [("mark_stack", "Can mark stack and its resources unhealthy")]
        indexes = [
            models.Index("name", "id", name="stack_name"),
            models.Index("status", "id", name="stack_status"),
            models.Index("project_id", "id", name="stack_project_id"),
            models.Index("created_at", "id", name="stack_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="stack_updated_at"),
        ]
        constraints = [
            models.UniqueConstraint("project_id", "name", condition=Q(deleted_at=None), name="stack_name_in_project"),
            models.CheckConstraint(
                condition=Q(root=None, parent_resource=None) | Q(root__isnull=False, parent_resource__isnull=False),
                name="stack_root_or_nested",
            ),
        ]

    @property
    def seconds_allowed(self) -> int | None:
        """The timeout of each action of an operation in seconds, or None for the site's default."""
        return self.timeout_mins and self.timeout_mins * 60

    @property
    def root_key(self) -> int:
        """The primary key of the root stack, whose lock covers the whole tree."""
        return self.root_id or self.pk


class StackResourceQuerySet(RecordQuerySet):
    def tree(self, root: Stack) -> Self:
        """Select the resources of a root stack and its nested stacks, at any depth."""
        return self.filter(Q(stack=root.pk) | Q(stack__root=root.pk))

    def failed_first(self) -> Self:
        """Order members for removal or replacement: failed ones first, then the oldest, then by name.

        See docs/compatibility.md, "Order of group members".
        """
        is_well = models.Case(models.When(status__in=FAILED, then=1), default=2, output_field=models.IntegerField())
        return self.order_by(is_well, F("made_at").asc(nulls_first=True), "name")


class StackResource(StackPart):
    """An element of a stack, with the id of its counterpart in the cloud.

    A replacement keeps the name and the row, and increments ``generation``.
    """

    class Type(models.TextChoices):
        SERVER = "server"
        SCALING_GROUP = "scaling_group"
        STACK = "stack"

    NESTING = (Type.SCALING_GROUP, Type.STACK)

    transition_fields = [
        *StackPart.transition_fields,
        *("physical_id", "former_physical_id", "generation", "made_at", "type", "properties", "depends_on"),
    ]

    stack = models.ForeignKey(Stack, models.CASCADE, related_name="resources")
    type = models.CharField(max_length=20, choices=Type)
    properties = models.JSONField(default=dict, help_text="properties in the template of the last creation or update")
    depends_on = models.JSONField(default=list, help_text="names of the resources that are created before this one")
    physical_id = models.CharField(
        max_length=255, null=True, editable=False, help_text="UUID of the server or of the nested stack"
    )
    former_physical_id = models.CharField(
        max_length=255,
        null=True,
        editable=False,
        help_text="physical_id of the replaced counterpart, until that is deleted",
    )
    generation = models.PositiveIntegerField(default=0, editable=False, help_text="number of replacements")
    made_at = models.DateTimeField(
        null=True, editable=False, help_text="time at which the current counterpart was created"
    )

    objects = StackResourceQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        indexes = [
            models.Index("stack", "name", "id", name="stack_resource_stack"),
            models.Index("name", "id", name="stack_resource_name"),
            models.Index("status", "id", name="stack_resource_status"),
            models.Index("physical_id", "id", name="stack_resource_physical_id"),
        ]
        constraints = [
            models.UniqueConstraint("stack", "name", condition=Q(deleted_at=None), name="stack_resource_once"),
        ]

    @property
    def is_nesting(self) -> bool:
        """Return whether the resource contains a stack."""
        return self.type in self.NESTING

    @property
    def reference_id(self) -> str:
        """Return Heat's reference id, by which other parts of a template refer to the resource."""
        return f"{self.stack.name}-{self.name}"

    @property
    def server_name(self) -> str:
        """Return the name of its server in the cloud."""
        return self.reference_id[:NAME_LENGTH]

    def token(self, generation: int) -> str:
        """Return the token for the creation of the server of a generation."""
        return f"{self.uuid}/{generation}"

    def set_counterpart(self, physical_id: str | UUID, generation: int, now: datetime | None = None) -> None:
        """Store the new counterpart in the cloud, and keep the id of the former one until that is deleted."""
        if self.physical_id not in (None, str(physical_id)):
            self.former_physical_id = self.physical_id
        self.physical_id, self.generation, self.made_at = str(physical_id), generation, now or timezone.now()
