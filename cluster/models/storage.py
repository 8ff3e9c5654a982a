"""Storage nodes with their pools, volume types, and the volumes. Sizes are in GB."""

from collections.abc import Iterable
from typing import Any

from django.db import models
from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from cluster.models.compute import DEFAULT_ZONE, Server
from watcher_site.database.records import Record, RecordQuerySet

BATCH = 500


class VolumeType(Record):
    """A kind of storage that volumes may require."""

    name = models.CharField(max_length=255)
    extra_specs = models.JSONField(default=dict, blank=True)

    objects = RecordQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint("name", condition=Q(deleted_at=None), name="volume_type_name")]

    def __str__(self) -> str:
        return self.name


class StorageNode(Record):
    """A backend of the block storage service; ``host`` has the form ``host@backend``."""

    class Status(models.TextChoices):
        ENABLED = "enabled"
        DISABLED = "disabled"

    class State(models.TextChoices):
        UP = "up"
        DOWN = "down"

    host = models.CharField(max_length=255)
    zone = models.CharField(max_length=255, default=DEFAULT_ZONE, help_text="the availability zone")
    status = models.CharField(max_length=20, choices=Status, default=Status.ENABLED)
    state = models.CharField(max_length=20, choices=State, default=State.UP)
    volume_types = models.ManyToManyField(VolumeType, related_name="storage_nodes")

    objects = RecordQuerySet.as_manager()

    class Meta:
        ordering = ["host"]
        constraints = [models.UniqueConstraint("host", condition=Q(deleted_at=None), name="storage_node_host")]

    def __str__(self) -> str:
        return self.host


class Pool(Record):
    """A part of a storage node, named ``host@backend#pool``, with the capacities that the cloud reports.

    ``allocated_capacity_gb`` is the total size of its volumes, ``provisioned_capacity_gb`` the promised capacity.
    ``virtual_free`` is the total capacity times the over-subscription ratio minus the provisioned capacity.
    """

    name = models.CharField(max_length=255)
    storage_node = models.ForeignKey(StorageNode, models.PROTECT, related_name="pools")
    total_volumes = models.PositiveIntegerField(default=0)
    total_capacity_gb = models.PositiveBigIntegerField()
    free_capacity_gb = models.PositiveBigIntegerField(default=0)
    provisioned_capacity_gb = models.PositiveBigIntegerField(default=0)
    allocated_capacity_gb = models.PositiveBigIntegerField(default=0)
    virtual_free = models.BigIntegerField(default=0)
    max_over_subscription_ratio = models.FloatField(default=1.0)

    objects = RecordQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        indexes = [
            models.Index("total_volumes", "id", name="pool_total_volumes"),
            models.Index("provisioned_capacity_gb", "id", name="pool_provisioned_capacity"),
        ]
        constraints = [models.UniqueConstraint("name", condition=Q(deleted_at=None), name="pool_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def used_capacity_gb(self) -> int:
        return self.total_capacity_gb - self.free_capacity_gb

    @property
    def virtual_capacity_gb(self) -> int:
        return int(self.total_capacity_gb * self.max_over_subscription_ratio)

    def set_usage(self, volumes: int, allocated: int) -> None:
        """Set all figures that are derived from the number and total size of its volumes."""
        self.total_volumes, self.allocated_capacity_gb, self.provisioned_capacity_gb = volumes, allocated, allocated
        self.free_capacity_gb = max(self.total_capacity_gb - allocated, 0)
        self.virtual_free = self.virtual_capacity_gb - allocated


USAGE_COLUMNS = (
    "total_volumes",
    "allocated_capacity_gb",
    "provisioned_capacity_gb",
    "free_capacity_gb",
    "virtual_free",
)


class VolumeQuerySet(RecordQuerySet):
    def held_by(self, pools: Iterable[Pool]) -> dict[Any, tuple[int, int]]:
        """Return the number and total GB of the volumes in each pool or moving to it, by the pool's key."""
        keys = [pool.pk for pool in pools]
        usage: dict[Any, tuple[int, int]] = dict.fromkeys(keys, (0, 0))
        for place in ("pool", "destination"):
            volumes_by_pool = self.present().filter(**{f"{place}__in": keys}).order_by().values_list(place)
            for key, volumes, size in volumes_by_pool.annotate(volumes=Count("pk"), size=Sum("size")):
                usage[key] = (usage[key][0] + volumes, usage[key][1] + size)
        return usage


class Volume(Record):
    """A block device. ``status`` is Cinder's status; ``pool`` is None before the volume is placed."""

    class Status(models.TextChoices):
        CREATING = "creating"
        AVAILABLE = "available"
        ATTACHING = "attaching"
        IN_USE = "in-use"
        DETACHING = "detaching"
        MAINTENANCE = "maintenance"
        RETYPING = "retyping"
        DELETING = "deleting"
        ERROR = "error"

    name = models.CharField(max_length=255)
    size = models.PositiveIntegerField(help_text="GB")
    status = models.CharField(max_length=20, choices=Status, default=Status.AVAILABLE)
    pool = models.ForeignKey(Pool, models.PROTECT, null=True, related_name="volumes")
    destination = models.ForeignKey(
        Pool,
        models.PROTECT,
        null=True,
        related_name="arriving_volumes",
        help_text="target of the current migration; the volume reserves capacity in both pools until its end",
    )
    migration_status = models.CharField(max_length=64, null=True, blank=True)
    operation_owner = models.CharField(max_length=64, default="", db_default="", blank=True, editable=False)
    volume_type = models.ForeignKey(VolumeType, models.PROTECT, null=True, related_name="volumes")
    multiattach = models.BooleanField(default=False)
    bootable = models.BooleanField(default=False)
    snapshot_id = models.CharField(
        max_length=255, default="", blank=True, help_text="id of the snapshot from which the volume was created"
    )
    has_snapshots = models.BooleanField(default=False, help_text="whether the volume has snapshots")
    project_id = models.CharField(max_length=255, default="", blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    servers = models.ManyToManyField(Server, through="VolumeAttachment", related_name="volumes")
    cloud_updated_at = models.DateTimeField(
        null=True, editable=False, help_text="time of the last change in the cloud, by the cloud's clock"
    )
    reported_at = models.DateTimeField(
        null=True, editable=False, help_text="time of the newest notification of the cloud whose content was stored"
    )

    objects = VolumeQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        indexes = [
            models.Index("name", "id", name="volume_name"),
            models.Index("status", "id", name="volume_status"),
            models.Index("size", "id", name="volume_size"),
            models.Index("migration_status", "id", name="volume_migration_status"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(destination=None) | Q(pool__isnull=False) & ~Q(destination=F("pool")),
                name="volume_destination_elsewhere",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class VolumeAttachment(Record):
    """The use of a volume by a server; its UUID is the id of the attachment."""

    volume = models.ForeignKey(Volume, models.CASCADE, related_name="attachments")
    server = models.ForeignKey(Server, models.CASCADE, related_name="attachments")

    objects = RecordQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint("volume", "server", condition=Q(deleted_at=None), name="volume_attachment_pair"),
        ]

    def __str__(self) -> str:
        return f"{self.volume} on {self.server}"


def update_usage(pools: Iterable[Pool]) -> None:
    """Compute the capacity figures of locked pools from their volumes, and write the pools that changed."""
    pools = [pool for pool in pools if not pool.deleted_at]
    usage = Volume.objects.held_by(pools)
    changed = []
    for pool in pools:
        before = [getattr(pool, name) for name in USAGE_COLUMNS]
        pool.set_usage(*usage[pool.pk])
        if before != [getattr(pool, name) for name in USAGE_COLUMNS]:
            pool.updated_at = timezone.now()
            changed.append(pool)
    Pool.objects.bulk_update(changed, [*USAGE_COLUMNS, "updated_at"], batch_size=BATCH)
