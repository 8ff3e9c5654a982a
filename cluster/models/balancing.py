"""Pools of the embedded load balancer, and servers that are leaving a pool."""

from typing import Self
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils import timezone

from cluster.models.compute import Server
from watcher_site.database.records import Record, RecordQuerySet
from watcher_site.database.text import UNSTORABLE

# As in Octavia. A member of weight 0 keeps its connections and gets no new ones.
MAX_WEIGHT = 256
MAX_PORT = 65535


class BalancingPoolQuerySet(RecordQuerySet):
    def named(self, identifier: str) -> Self:
        """Select the pool with this UUID or name, unless it was deleted."""
        if UNSTORABLE.search(identifier):
            return self.none()
        try:
            return self.present().filter(uuid=UUID(identifier))
        except ValueError:
            return self.present().filter(name=identifier)


class BalancingPool(Record):
    """A pool of the embedded load balancer."""

    name = models.CharField(max_length=255)

    objects = BalancingPoolQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        verbose_name = "load-balancer pool"
        constraints = [models.UniqueConstraint("name", condition=Q(deleted_at=None), name="balancing_pool_name")]

    def __str__(self) -> str:
        return self.name


class BalancingMember(models.Model):
    """A server in a pool of the embedded load balancer. The row stays when the server is deleted."""

    pool = models.ForeignKey(BalancingPool, models.CASCADE, related_name="members")
    server = models.ForeignKey(Server, models.CASCADE, related_name="+")
    port = models.PositiveIntegerField(help_text="port on which the server accepts connections")
    weight = models.PositiveIntegerField(default=1, help_text="share of new connections relative to other members")
    connections = models.PositiveIntegerField(default=0, help_text="number of open connections")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint("pool", "server", name="balancing_member_once"),
            models.CheckConstraint(condition=Q(weight__lte=MAX_WEIGHT), name="balancing_member_weight"),
            models.CheckConstraint(condition=Q(port__gte=1, port__lte=MAX_PORT), name="balancing_member_port"),
        ]

    def __str__(self) -> str:
        return f"{self.server} in {self.pool}"


class Draining(models.Model):
    """A server that is leaving a pool; its grace period begins at ``since``."""

    pool = models.UUIDField()
    server = models.UUIDField()
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint("pool", "server", name="draining_once")]

    def __str__(self) -> str:
        return f"{self.server} out of {self.pool}"
