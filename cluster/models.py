"""The cloud as tables: the compute nodes and the servers on them.

Field names and units follow the compute data model of the infra-optim API: memory in MB, disk in GB.
"""

from typing import Self

from django.db import models
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce

from watcher_site.records import Record, RecordQuerySet


class ComputeNodeQuerySet(RecordQuerySet):
    def with_use(self) -> Self:
        """Add what the servers on each node, and those on their way to it, take: ``used_vcpus`` and so on."""
        takers = Server.objects.present().filter(Q(node=models.OuterRef("pk")) | Q(destination=models.OuterRef("pk")))

        def taken(field: str) -> Coalesce:
            total = takers.order_by().values(one=models.Value(1)).annotate(total=Sum(field)).values("total")
            return Coalesce(models.Subquery(total), 0)

        return self.annotate(used_vcpus=taken("vcpus"), used_memory=taken("memory"), used_disk=taken("disk"))


class ComputeNode(Record):
    """A hypervisor, and its nova-compute service."""

    class Status(models.TextChoices):
        ENABLED = "enabled"
        DISABLED = "disabled"

    class State(models.TextChoices):
        UP = "up"
        DOWN = "down"

    hostname = models.CharField(max_length=255)
    status = models.CharField(max_length=20, choices=Status, default=Status.ENABLED)
    disabled_reason = models.CharField(max_length=255, null=True, blank=True)
    state = models.CharField(max_length=20, choices=State, default=State.UP)
    vcpus = models.PositiveIntegerField()
    vcpu_reserved = models.PositiveIntegerField(default=0)
    vcpu_ratio = models.FloatField(default=1.0)
    memory = models.PositiveIntegerField(help_text="MB")
    memory_mb_reserved = models.PositiveIntegerField(default=0)
    memory_ratio = models.FloatField(default=1.0)
    disk = models.PositiveIntegerField(help_text="GB")
    disk_gb_reserved = models.PositiveIntegerField(default=0)
    disk_ratio = models.FloatField(default=1.0)

    objects = ComputeNodeQuerySet.as_manager()

    class Meta:
        ordering = ["hostname"]
        constraints = [
            models.UniqueConstraint("hostname", condition=Q(deleted_at=None), name="compute_node_hostname"),
        ]

    def __str__(self) -> str:
        return self.hostname

    @property
    def capacity_vcpus(self) -> float:
        return (self.vcpus - self.vcpu_reserved) * self.vcpu_ratio

    @property
    def capacity_memory(self) -> float:
        return (self.memory - self.memory_mb_reserved) * self.memory_ratio

    @property
    def capacity_disk(self) -> float:
        return (self.disk - self.disk_gb_reserved) * self.disk_ratio


class Server(Record):
    """A virtual machine. Without a node it was scheduled nowhere."""

    class State(models.TextChoices):
        ACTIVE = "active"
        BUILDING = "building"
        PAUSED = "paused"
        SUSPENDED = "suspended"
        STOPPED = "stopped"
        RESCUED = "rescued"
        RESIZED = "resized"
        SHELVED = "shelved"
        ERROR = "error"

    name = models.CharField(max_length=255)
    node = models.ForeignKey(ComputeNode, models.PROTECT, null=True, related_name="servers")
    destination = models.ForeignKey(
        ComputeNode,
        models.PROTECT,
        null=True,
        related_name="arriving_servers",
        help_text="where it is being migrated to; it takes room on both nodes until then",
    )
    state = models.CharField(max_length=20, choices=State, default=State.ACTIVE)
    task_state = models.CharField(max_length=64, null=True, blank=True)
    vcpus = models.PositiveIntegerField()
    memory = models.PositiveIntegerField(help_text="MB")
    disk = models.PositiveIntegerField(help_text="GB")
    metadata = models.JSONField(default=dict, blank=True)
    project_id = models.CharField(max_length=255, default="", blank=True)
    locked = models.BooleanField(default=False)
    pinned_az = models.CharField(max_length=255, default="", blank=True)
    flavor_extra_specs = models.JSONField(default=dict, blank=True)

    objects = RecordQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        indexes = [
            models.Index("name", "id", name="server_name"),
            models.Index("state", "id", name="server_state"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(destination=None) | Q(node__isnull=False) & ~Q(destination=F("node")),
                name="server_destination_elsewhere",
            ),
        ]

    def __str__(self) -> str:
        return self.name
