"""Clusters, the profiles of their servers, and the policies that are bound to them."""

from collections.abc import Collection
from typing import Any, Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper
from django.utils import timezone
from django_fsm import RETURN_VALUE, FSMField, transition

from watcher_site.database.records import NullsFirst, Record, RecordQuerySet
from watcher_site.messages import STATUS_MESSAGE_LENGTH, cut
from watcher_site.state_machine import ConcurrentTransition, StatefulModel
from watcher_site.validation import find_named

NAME_LENGTH = 255
UNLIMITED = -1
MAX_PRIORITY = 1000


def project_field() -> models.CharField:
    return models.CharField(
        max_length=255, default="", db_default="", blank=True, help_text="project of the object; empty: none"
    )


def user_field() -> models.CharField:
    return models.CharField(
        max_length=255,
        default="",
        db_default="",
        blank=True,
        editable=False,
        help_text="the user who created the object",
    )


def names_among(names: Collection[str]) -> Q:
    """Return the condition that the name of a record is one of these, ignoring case."""
    return Q(*(Q(name__iexact=name) for name in names), _connector=Q.OR)


def trust_field(related_name: str) -> models.ForeignKey[Any, Any]:
    """Return the reference to the trust by which servers are created in the project."""
    return models.ForeignKey("cluster.Trust", models.SET_NULL, null=True, editable=False, related_name=related_name)


class NamedQuerySet(RecordQuerySet):
    """Records that users identify by name."""

    def named(self, identifier: str) -> Self:
        """Select by UUID, or by name ignoring case."""
        found: Self = find_named(self, identifier)
        return found


class ProfileQuerySet(NamedQuerySet):
    def usable_in(self, project: str) -> Self:
        """Select the profiles of a project, followed by those of no project, which all projects may use."""
        return self.filter(project_id__in={"", project}).order_by("-project_id", "name", "pk")


class Profile(Record):
    """A description of servers to create: ``spec`` has their flavor, and optionally their image and metadata."""

    class Type(models.TextChoices):
        SERVER = "os.nova.server-1.0"

    name = models.CharField(max_length=NAME_LENGTH)
    type = models.CharField(max_length=255, choices=Type, default=Type.SERVER)
    spec = models.JSONField()
    metadata = models.JSONField(
        default=dict, blank=True, help_text="notes of users about the profile, not for its servers"
    )
    project_id = project_field()

    objects = ProfileQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index("name", "id", name="profile_name_sort"),
            models.Index("created_at", "id", name="profile_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="profile_updated_at"),
            models.Index(Upper("name"), "id", name="profile_any_case_name"),
            models.Index("project_id", "id", name="profile_project_id"),
        ]
        constraints = [
            models.UniqueConstraint(
                "project_id", Upper("name"), condition=Q(deleted_at=None), name="profile_name_in_project"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ClusterQuerySet(NamedQuerySet):
    def of_profile(self, identifier: str) -> Self:
        """Select the clusters whose profile has this UUID or name."""
        return self.filter(profile__in=Profile.objects.present().named(identifier))


class Cluster(StatefulModel):
    """A group of nodes with the same profile, and a desired capacity.

    The statuses are those of OpenStack's cluster service. Each operation is an action that holds the cluster's lock;
    the status shows the operation in progress, or the result of the last one.
    """

    class Status(models.TextChoices):
        INIT = "INIT"
        CREATING = "CREATING"
        ACTIVE = "ACTIVE"
        UPDATING = "UPDATING"
        RESIZING = "RESIZING"
        CHECKING = "CHECKING"
        RECOVERING = "RECOVERING"
        DELETING = "DELETING"
        WARNING = "WARNING"
        CRITICAL = "CRITICAL"
        ERROR = "ERROR"

    SETTLED = (Status.ACTIVE, Status.WARNING, Status.CRITICAL, Status.ERROR)
    IN_PROGRESS = (
        Status.CREATING,
        Status.UPDATING,
        Status.RESIZING,
        Status.CHECKING,
        Status.RECOVERING,
        Status.DELETING,
    )

    guard_fields = ["status"]
    transition_fields = [
        *("status", "status_reason", "init_at", "next_index"),
        *("profile", "min_size", "max_size", "desired_capacity", "name", "metadata", "timeout"),
    ]

    name = models.CharField(max_length=NAME_LENGTH)
    profile = models.ForeignKey(Profile, models.PROTECT, related_name="clusters")
    min_size = models.PositiveIntegerField(default=0)
    max_size = models.IntegerField(default=UNLIMITED, help_text=f"{UNLIMITED}: unlimited")
    desired_capacity = models.PositiveIntegerField(default=0, help_text="desired number of nodes")
    timeout = models.PositiveIntegerField(
        default=0, help_text="timeout of its actions in seconds; 0: the default of the site"
    )
    metadata = models.JSONField(
        default=dict, blank=True, help_text="notes of users about the cluster, not for its servers"
    )
    project_id = project_field()
    user_id = user_field()
    trust = trust_field("clusters")
    next_index = models.PositiveIntegerField(default=1, editable=False, help_text="index of the next node that joins")
    status = FSMField(max_length=20, choices=Status, default=Status.INIT, protected=True, editable=False)
    status_reason = models.CharField(max_length=STATUS_MESSAGE_LENGTH, null=True, editable=False)
    init_at = models.DateTimeField(null=True, editable=False, help_text="time at which the creation began")

    objects = ClusterQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        permissions = [("operate_cluster", "Can resize, check and recover cluster, and change its nodes")]
        indexes = [
            models.Index("name", "id", name="cluster_name"),
            models.Index(Upper("name"), "id", name="cluster_any_case_name"),
            models.Index("status", "id", name="cluster_status"),
            models.Index("project_id", "id", name="cluster_project_id"),
            models.Index("created_at", "id", name="cluster_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="cluster_updated_at"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def seconds_allowed(self) -> int | None:
        """The timeout of its actions in seconds, or None for the site's default."""
        return self.timeout or None

    @transition(field=status, source="*", target=RETURN_VALUE(*IN_PROGRESS))
    def begin(self, status: "Cluster.Status", reason: str) -> str:
        """Begin an operation, or continue one that another process began. The action holds the cluster's lock."""
        self.status_reason = reason
        if status == self.Status.CREATING:
            self.init_at = self.init_at or timezone.now()
        return status

    @transition(field=status, source="*", target=RETURN_VALUE(*SETTLED))
    def settle(self, status: "Cluster.Status", reason: str) -> str:
        """Store the status and its reason after an operation on the cluster has ended."""
        self.status_reason = cut(reason)
        return status

    def remove(self) -> None:
        """Mark the row as deleted, after the nodes were deleted.

        Raises:
            ConcurrentTransition: the cluster is not DELETING, or was deleted already.
        """
        now = timezone.now()
        deleting = type(self).objects.present().filter(pk=self.pk, status=self.Status.DELETING)
        if not deleting.update(deleted_at=now, updated_at=now):
            raise ConcurrentTransition(f"Cluster {self.uuid} is no longer as it was read.")

    def members(self) -> Any:
        """Return its nodes in the order in which they joined."""
        return self.nodes.present().order_by("index", "pk")


class PolicyQuerySet(NamedQuerySet):
    """Policies."""


class Policy(Record):
    """A policy of a type in `cluster.policies`, with its properties in ``spec``."""

    name = models.CharField(max_length=NAME_LENGTH)
    type = models.CharField(max_length=255)
    spec = models.JSONField(default=dict)

    objects = PolicyQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "policies"
        indexes = [
            models.Index("name", "id", name="policy_name_sort"),
            models.Index("type", "id", name="policy_type"),
            models.Index("created_at", "id", name="policy_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="policy_updated_at"),
        ]
        constraints = [models.UniqueConstraint(Upper("name"), condition=Q(deleted_at=None), name="policy_name")]

    def __str__(self) -> str:
        return self.name


class PolicyBindingQuerySet(RecordQuerySet):
    def enabled_for(self, cluster: Cluster) -> Any:
        """Return the enabled policies of a cluster, in the order in which they are applied."""
        return self.present().filter(cluster=cluster, enabled=True).select_related("policy").order_by("priority", "pk")


class PolicyBinding(Record):
    """The binding of a policy to a cluster."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="policy_bindings")
    policy = models.ForeignKey(Policy, models.PROTECT, related_name="bindings")
    # Policies are applied in ascending order.
    priority = models.PositiveIntegerField(help_text="policies with smaller values are checked first")
    enabled = models.BooleanField(default=True)
    last_op = models.DateTimeField(
        null=True, editable=False, help_text="time of the last scaling to which the policy applied"
    )

    objects = PolicyBindingQuerySet.as_manager()

    class Meta:
        ordering = ["priority", "pk"]
        constraints = [
            models.UniqueConstraint("cluster", "policy", condition=Q(deleted_at=None), name="policy_attached_once")
        ]

    def __str__(self) -> str:
        return f"{self.policy} of {self.cluster}"
