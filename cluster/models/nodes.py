"""Nodes of clusters, each with a server. A node may also be in no cluster. (They are not compute nodes.)"""

from typing import Self
from uuid import UUID

from django.db import models
from django.db.models.functions import Upper
from django.utils import timezone
from django_fsm import RETURN_VALUE, FSMField, transition

from cluster.models.clusters import (
    NAME_LENGTH,
    Cluster,
    NamedQuerySet,
    Profile,
    project_field,
    trust_field,
    user_field,
)
from cluster.models.messages import (
    CHECK_FAILED,
    CHECK_PASSED,
    CREATION_IN_PROGRESS,
    CREATION_SUCCEEDED,
    CREATION_UNDONE,
    DELETION_IN_PROGRESS,
    RECOVERY_IN_PROGRESS,
    RECOVERY_SUCCEEDED,
    UPDATE_IN_PROGRESS,
)
from cluster.models.stacks import MARKED
from watcher_site.database.records import NullsFirst
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut
from watcher_site.state_machine import ConcurrentTransition, StatefulModel

NO_INDEX = -1


class NodeQuerySet(NamedQuerySet):
    def of_profile(self, identifier: str) -> Self:
        """Select the nodes whose profile has this UUID or name."""
        return self.filter(profile__in=Profile.objects.present().named(identifier))

    def of_cluster(self, identifier: str) -> Self:
        """Select the nodes of the cluster with this UUID or name."""
        return self.filter(cluster__in=Cluster.objects.present().named(identifier))

    def find(self, uuid: str) -> "Node | None":
        """Return the node with this UUID, with its profile, cluster and trust, or None if it was deleted."""
        found: Node | None = (
            self.present().select_related("profile", "cluster", "trust").filter(uuid=UUID(uuid)).first()
        )
        return found


class Node(StatefulModel):
    """A desired server, described by a profile, and the actual server in the cloud (``physical_id``).

    The statuses are those of OpenStack's cluster service. Each replacement of the server increments ``generation``.
    """

    class Status(models.TextChoices):
        INIT = "INIT"
        CREATING = "CREATING"
        ACTIVE = "ACTIVE"
        UPDATING = "UPDATING"
        RECOVERING = "RECOVERING"
        OPERATING = "OPERATING"
        DELETING = "DELETING"
        WARNING = "WARNING"
        ERROR = "ERROR"

    SETTLED = (Status.ACTIVE, Status.WARNING, Status.ERROR)
    IN_PROGRESS = (Status.CREATING, Status.UPDATING, Status.RECOVERING, Status.OPERATING, Status.DELETING)
    CREATABLE = (Status.INIT, Status.CREATING, Status.ERROR)
    # The holder of the lock may find the node in an operation that an interrupted process began.
    RECOVERABLE = (Status.INIT, Status.CREATING, Status.UPDATING, Status.RECOVERING, Status.OPERATING, *SETTLED)

    guard_fields = ["status"]
    transition_fields = [
        *("status", "status_reason", "physical_id", "generation", "init_at", "cluster", "index"),
        *("profile", "name", "role", "metadata", "tainted", "data", "unhealthy_reason"),
    ]

    name = models.CharField(max_length=NAME_LENGTH)
    profile = models.ForeignKey(Profile, models.PROTECT, related_name="nodes")
    cluster = models.ForeignKey(
        Cluster,
        models.PROTECT,
        null=True,
        editable=False,
        related_name="nodes",
        help_text="cluster of the node; null: none",
    )
    index = models.IntegerField(
        default=NO_INDEX,
        db_default=NO_INDEX,
        editable=False,
        help_text="position in the order in which nodes joined the cluster",
    )
    role = models.CharField(max_length=255, default="", blank=True, help_text="purpose of the node, a free text")
    metadata = models.JSONField(
        default=dict, blank=True, help_text="notes of users about the node, not for its server"
    )
    project_id = project_field()
    user_id = user_field()
    trust = trust_field("nodes")
    tainted = models.BooleanField(
        default=False, db_default=False, help_text="whether the node is removed first when the cluster is reduced"
    )
    data = models.JSONField(
        default=dict, db_default={}, editable=False, help_text="decisions of policies about the node"
    )
    status = FSMField(max_length=20, choices=Status, default=Status.INIT, protected=True, editable=False)
    status_reason = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True, editable=False)
    unhealthy_reason = models.CharField(
        max_length=STATUS_MESSAGE_LENGTH,
        null=True,
        editable=False,
        help_text="reason for which a user marked the node unhealthy, regardless of its server; null: not marked",
    )
    init_at = models.DateTimeField(null=True, editable=False, help_text="time at which the creation first began")
    # Not a foreign key, because the site's table may not contain the server yet, or no longer.
    physical_id = models.UUIDField(null=True, editable=False, help_text="UUID of the server")
    generation = models.PositiveIntegerField(
        default=0, db_default=0, editable=False, help_text="number of replacements of the server"
    )

    objects = NodeQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        permissions = [
            ("check_node", "Can check node"),
            ("recover_node", "Can recover node"),
            ("mark_node", "Can mark node unhealthy"),
        ]
        indexes = [
            models.Index("name", "id", name="node_name"),
            models.Index(Upper("name"), "id", name="node_any_case_name"),
            models.Index("status", "id", name="node_status"),
            models.Index("project_id", "id", name="node_project_id"),
            models.Index("cluster", "index", "id", name="node_cluster"),
            models.Index("created_at", "id", name="node_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="node_updated_at"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def token(self) -> str:
        """Return the token for the creation of the server of the current generation."""
        return f"{self.uuid}/{self.generation}" if self.generation else str(self.uuid)

    @property
    def is_marked(self) -> bool:
        """Return whether a user marked the node unhealthy."""
        return self.unhealthy_reason is not None

    def begin_generation(self, generation: int) -> None:
        """Prepare for a new server with this generation, which replaces the current one."""
        self.generation, self.physical_id, self.unhealthy_reason = generation, None, None

    @transition(field=status, source=CREATABLE, target=Status.CREATING)
    def begin_creation(self) -> None:
        """Begin, or repeat, the creation of the node's server."""
        self.status_reason = CREATION_IN_PROGRESS.text
        self.init_at = self.init_at or timezone.now()

    @transition(field=status, source=Status.CREATING, target=Status.ACTIVE)
    def finish_creation(self, server: str) -> None:
        self.status_reason, self.physical_id = CREATION_SUCCEEDED.text, UUID(server)

    @transition(field=status, source=[Status.INIT, Status.CREATING, *SETTLED], target=Status.INIT)
    def undo_creation(self) -> None:
        """Return to the state before the creation, after the server was deleted. The node can be created again."""
        self.status_reason, self.physical_id = CREATION_UNDONE.text, None

    @transition(field=status, source=[Status.INIT, *IN_PROGRESS, *SETTLED], target=Status.DELETING)
    def begin_deletion(self) -> None:
        self.status_reason = DELETION_IN_PROGRESS.text

    @transition(field=status, source=RECOVERABLE, target=Status.RECOVERING)
    def begin_recovery(self) -> None:
        self.status_reason = RECOVERY_IN_PROGRESS.text

    @transition(field=status, source=Status.RECOVERING, target=Status.ACTIVE)
    def finish_recovery(self, server: str) -> None:
        self.status_reason, self.physical_id = RECOVERY_SUCCEEDED.text, UUID(server)
        self.unhealthy_reason = None

    @transition(field=status, source=[Status.UPDATING, *SETTLED], target=Status.UPDATING)
    def begin_update(self) -> None:
        self.status_reason = UPDATE_IN_PROGRESS.text

    @transition(field=status, source=Status.UPDATING, target=Status.ACTIVE)
    def finish_update(self, reason: str) -> None:
        self.status_reason = cut(reason)

    @transition(field=status, source=[*IN_PROGRESS], target=Status.ERROR)
    def fail(self, reason: str) -> None:
        """End an operation with an error. The node may have a server or not."""
        self.status_reason = cut(reason)

    @transition(field=status, source=SETTLED, target=Status.ACTIVE)
    def pass_check(self) -> None:
        self.status_reason = CHECK_PASSED.text

    @transition(field=status, source=SETTLED, target=Status.ERROR)
    def fail_check(self, reason: str) -> None:
        self.status_reason = cut(CHECK_FAILED.fill(reason=reason))

    @transition(field=status, source=SETTLED, target=Status.ERROR)
    def mark_unhealthy(self, reason: str = "") -> None:
        """Store a user's mark, which stays until the node is recovered or marked healthy."""
        self.unhealthy_reason = self.status_reason = cut(reason or MARKED)

    @transition(field=status, source=Status.ERROR, target=RETURN_VALUE(Status.ACTIVE, Status.ERROR))
    def mark_healthy(self, reason: str = "") -> str:
        """Remove a user's mark. A node without a server stays in ERROR; other problems are found by a check."""
        self.unhealthy_reason, self.status_reason = None, cut(reason or MARKED)
        return self.Status.ACTIVE if self.physical_id else self.Status.ERROR

    def remove(self) -> None:
        """Mark the row as deleted, after the server was deleted.

        Raises:
            ConcurrentTransition: the node is not DELETING, or was deleted already.
        """
        now = timezone.now()
        deleting = type(self).objects.present().filter(pk=self.pk, status=self.Status.DELETING)
        if not deleting.update(deleted_at=now, updated_at=now):
            raise ConcurrentTransition(f"Node {self.uuid} is no longer as it was read.")
