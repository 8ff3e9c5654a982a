"""Policies: rules about what may be done to clusters, and how; and which cluster has which."""

from typing import Any, Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper

from cluster.models.clusters import Cluster
from cluster.models.profiles import NAME_LENGTH
from watcher_site.database.records import NullsFirst, Record, RecordQuerySet
from watcher_site.validation.names import find_named

LAST_PRIORITY = 1000


class PolicyQuerySet(RecordQuerySet):
    def named(self, identifier: str) -> Self:
        """Select by UUID, or by name ignoring case."""
        found: Self = find_named(self, identifier)
        return found


class Policy(Record):
    """A policy of one of the types in `cluster.policies`; ``spec`` holds its properties."""

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
    priority = models.PositiveIntegerField(help_text="the smaller, the earlier it is asked")
    enabled = models.BooleanField(default=True)
    last_op = models.DateTimeField(null=True, editable=False, help_text="when what it is about was last done")

    objects = PolicyBindingQuerySet.as_manager()

    class Meta:
        ordering = ["priority", "pk"]
        constraints = [
            models.UniqueConstraint("cluster", "policy", condition=Q(deleted_at=None), name="policy_attached_once")
        ]

    def __str__(self) -> str:
        return f"{self.policy} of {self.cluster}"
