"""Compute nodes, the host aggregates that group them, flavors, and the servers with their waits for capacity."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Self
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce, Greatest

from watcher_site.database.records import NullsFirst, Record, RecordQuerySet
from watcher_site.messages import STATUS_MESSAGE_LENGTH

DEFAULT_ZONE = "nova"
RESOURCES = ("vcpus", "memory", "disk")
# The pause after the first search for capacity. It doubles with each further search.
FIRST_PAUSE = timedelta(seconds=30)
MAX_PAUSE = timedelta(minutes=15)


def allocation(resource: str) -> Greatest:
    """Return the amount that a server reserves: during a resize, the larger of the old and the new amount."""
    return Greatest(resource, Coalesce(f"new_flavor__{resource}", 0))


class ComputeNodeQuerySet(RecordQuerySet):
    def schedulable(self) -> Self:
        """Select the compute nodes that the scheduler may choose for new servers."""
        return self.filter(status=ComputeNode.Status.ENABLED, state=ComputeNode.State.UP)

    def with_use(self) -> Self:
        """Add the amounts that servers on each node, and those migrating to it, reserve: ``used_vcpus`` and so on.

        It runs subqueries for each row, for one page of a list. For many nodes, use `ServerQuerySet.use_by_node`.
        """
        takers = Server.objects.present().filter(Q(node=models.OuterRef("pk")) | Q(destination=models.OuterRef("pk")))

        def used(resource: str) -> Coalesce:
            totals = takers.order_by().values(one=models.Value(1)).annotate(total=Sum(allocation(resource)))
            return Coalesce(models.Subquery(totals.values("total")), 0)

        return self.annotate(**{f"used_{resource}": used(resource) for resource in RESOURCES})


class ComputeNode(Record):
    """A hypervisor, and its nova-compute service."""

    class Status(models.TextChoices):
        ENABLED = "enabled"
        DISABLED = "disabled"

    class State(models.TextChoices):
        UP = "up"
        DOWN = "down"

    class PowerState(models.TextChoices):
        ON = "on"
        OFF = "off"

    hostname = models.CharField(max_length=255)
    zone = models.CharField(
        max_length=255, default=DEFAULT_ZONE, db_default=DEFAULT_ZONE, help_text="the availability zone"
    )
    power_state = models.CharField(max_length=20, choices=PowerState, default=PowerState.ON, db_default=PowerState.ON)
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
    allocation_units = models.JSONField(
        null=True,
        editable=False,
        help_text="min_unit, max_unit and step_size of the allocation of a server, by resource",
    )
    forced_down = models.BooleanField(
        default=False, db_default=False, help_text="whether an operator or a fencing program marked the node as down"
    )
    reported_at = models.DateTimeField(
        null=True, editable=False, help_text="time of the newest notification of the cloud whose content was stored"
    )

    objects = ComputeNodeQuerySet.as_manager()

    class Meta:
        ordering = ["hostname"]
        # For the sort keys and filters of the console's list; the filter by host includes deleted servers.
        indexes = [
            models.Index("hostname", "id", name="compute_node_any_hostname"),
            models.Index("zone", "id", name="compute_node_zone"),
            models.Index("state", "status", "id", name="compute_node_state"),
            models.Index("status", "id", name="compute_node_status"),
            models.Index("power_state", "id", name="compute_node_power_state"),
        ]
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


class HostAggregate(Record):
    """A group of compute nodes, identified by the cloud's integer. A node may be in several."""

    id = models.PositiveIntegerField(primary_key=True)
    name = models.CharField(max_length=255)
    metadata = models.JSONField(default=dict, blank=True)
    nodes = models.ManyToManyField(ComputeNode, related_name="aggregates")
    reported_at = models.DateTimeField(
        null=True, editable=False, help_text="time of the newest notification of the cloud whose content was stored"
    )

    objects = RecordQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint("name", condition=Q(deleted_at=None), name="host_aggregate_name"),
        ]

    def __str__(self) -> str:
        return self.name


def new_flavor_id() -> str:
    return str(uuid4())


class Flavor(Record):
    """A size of servers. ``flavor_id`` is the cloud's id, which may be any text."""

    flavor_id = models.CharField(max_length=255, default=new_flavor_id)
    name = models.CharField(max_length=255)
    vcpus = models.PositiveIntegerField()
    memory = models.PositiveIntegerField(help_text="MB")
    disk = models.PositiveIntegerField(help_text="GB")
    extra_specs = models.JSONField(default=dict, blank=True)

    objects = RecordQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint("name", condition=Q(deleted_at=None), name="flavor_name"),
            models.UniqueConstraint("flavor_id", condition=Q(deleted_at=None), name="flavor_flavor_id"),
        ]

    def __str__(self) -> str:
        return self.name


class ServerQuerySet(RecordQuerySet):
    def waiting(self) -> Self:
        """Select the servers that are PENDING for lack of capacity."""
        return self.present().filter(state=Server.State.PENDING, node=None)

    def given_up(self) -> Self:
        """Select the servers whose wait for capacity a user ended."""
        return self.filter(given_up_at__isnull=False)

    def use_by_node(self, nodes: models.QuerySet[ComputeNode]) -> dict[int, Counter[str]]:
        """Return the used vCPUs, MB of memory and GB of disk by the primary key of the node, in one query.

        Servers on a node and those migrating to it count. Nodes without servers are missing.
        """
        totals = {f"used_{resource}": Sum(allocation(resource)) for resource in RESOURCES}
        staying, arriving = (
            self.present()
            .filter(**{f"{place}__in": nodes.order_by()})
            .order_by()
            .values_list(place)
            .annotate(**totals)
            for place in ("node", "destination")
        )
        use: dict[int, Counter[str]] = {}
        for node, *amounts in staying.union(arriving, all=True):
            use.setdefault(node, Counter()).update(dict(zip(RESOURCES, amounts, strict=True)))
        return use


class Server(Record):
    """A virtual machine; ``node`` is None if it was not scheduled.

    Without a valid host, a server becomes ERROR or, with `settings.USE_PENDING_STATE`, PENDING until there is
    capacity. A server becomes PENDING only from BUILDING, and leaves it for BUILDING or ERROR (docs/compatibility.md,
    "The PENDING status").
    """

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
        PENDING = "pending"

    name = models.CharField(max_length=255)
    node = models.ForeignKey(ComputeNode, models.PROTECT, null=True, related_name="servers")
    destination = models.ForeignKey(
        ComputeNode,
        models.PROTECT,
        null=True,
        related_name="arriving_servers",
        help_text="target of the current migration; the server reserves capacity on both nodes until its end",
    )
    state = models.CharField(max_length=20, choices=State, default=State.ACTIVE)
    task_state = models.CharField(max_length=64, null=True, blank=True)
    operation_owner = models.CharField(max_length=64, default="", db_default="", blank=True, editable=False)
    token = models.CharField(
        max_length=64,
        default="",
        db_default="",
        blank=True,
        editable=False,
        help_text="token of the creation: a repeated creation with the same token finds this server",
    )
    flavor = models.CharField(
        max_length=255, default="", db_default="", blank=True, help_text="name of the current flavor"
    )
    new_flavor = models.ForeignKey(
        Flavor,
        models.PROTECT,
        null=True,
        related_name="+",
        help_text="target of the current resize; the server reserves the larger amounts until its end",
    )
    vcpus = models.PositiveIntegerField()
    memory = models.PositiveIntegerField(help_text="MB")
    disk = models.PositiveIntegerField(help_text="GB")
    metadata = models.JSONField(default=dict, blank=True)
    image = models.CharField(
        max_length=255,
        default="",
        db_default="",
        blank=True,
        help_text="id of the image from which the server was built",
    )
    project_id = models.CharField(max_length=255, default="", blank=True)
    user_id = models.CharField(
        max_length=255, default="", db_default="", blank=True, help_text="the user who requested the server"
    )
    launched_at = models.DateTimeField(
        null=True, editable=False, help_text="time at which the server first ran; null: never, or unknown"
    )
    fault = models.JSONField(null=True, editable=False, help_text="reason for ERROR or PENDING, in Nova's format")
    given_up_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="time at which the wait for capacity was ended, for clouds that cannot store it",
    )
    unhealthy_reason = models.CharField(
        max_length=STATUS_MESSAGE_LENGTH,
        null=True,
        editable=False,
        help_text="reason for which a user marked the server unhealthy; null: not marked",
    )
    locked = models.BooleanField(default=False)
    pinned_az = models.CharField(max_length=255, default="", blank=True)
    flavor_extra_specs = models.JSONField(default=dict, blank=True)
    cloud_updated_at = models.DateTimeField(
        null=True, editable=False, help_text="time of the last change in the cloud, by the cloud's clock"
    )
    reported_at = models.DateTimeField(
        null=True, editable=False, help_text="time of the newest notification of the cloud whose content was stored"
    )

    objects = ServerQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        permissions = [
            ("reset_server", "Can reset the state of server"),
            ("mark_server", "Can mark server unhealthy"),
        ]
        indexes = [
            models.Index("name", "id", name="server_name"),
            models.Index("state", "id", name="server_state"),
            models.Index("vcpus", "id", name="server_vcpus"),
            models.Index("memory", "id", name="server_memory"),
            models.Index("disk", "id", name="server_disk"),
            models.Index("task_state", "id", name="server_task_state"),
            models.Index("project_id", "id", name="server_project_id"),
            models.Index("flavor", "id", name="server_flavor"),
            models.Index("created_at", "id", name="server_created_at"),
            models.Index(NullsFirst("updated_at"), "id", name="server_updated_at"),
            models.Index("uuid", condition=Q(given_up_at__isnull=False), name="server_given_up"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(destination=None) | Q(node__isnull=False) & ~Q(destination=F("node")),
                name="server_destination_elsewhere",
            ),
            models.UniqueConstraint("token", condition=Q(deleted_at=None) & ~Q(token=""), name="server_token"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_run(self) -> bool:
        """Return whether the server ever ran, so that it can be rebuilt.

        Rows that were loaded from a topology may have no ``launched_at``.
        """
        return self.launched_at is not None or (self.node_id is not None and self.state != self.State.BUILDING)

    @property
    def reserved(self) -> dict[str, int]:
        """The vCPUs, MB of memory and GB of disk that it reserves on its node, as in `with_use`."""
        amounts: dict[str, int] = {resource: getattr(self, resource) for resource in RESOURCES}
        if self.new_flavor_id:
            return {resource: max(amount, getattr(self.new_flavor, resource)) for resource, amount in amounts.items()}
        return amounts


class ServerWaitQuerySet(models.QuerySet["ServerWait"]):
    def current(self) -> Self:
        """Select the waits of servers that are PENDING now, the oldest first."""
        return self.filter(server__in=Server.objects.waiting().order_by()).order_by("since", "pk")

    def update_waits(self, now: datetime) -> None:
        """Insert rows for new PENDING servers, and delete those of servers that no longer wait: three queries.

        The row of a BUILDING server stays, because the server waits again if its build fails.
        """
        unbuilt = [Server.State.PENDING, Server.State.BUILDING]
        self.exclude(server__in=Server.objects.present().filter(state__in=unbuilt).order_by()).delete()
        new = Server.objects.waiting().filter(wait=None).order_by("created_at", "pk").values_list("pk", flat=True)
        self.bulk_create([self.model(server_id=key, since=now) for key in new], ignore_conflicts=True)


class ServerWait(models.Model):
    """The wait of a server for capacity, kept until the server runs, fails or is deleted."""

    server = models.OneToOneField(Server, models.CASCADE, related_name="wait")
    since = models.DateTimeField()
    searches = models.PositiveIntegerField(default=0, db_default=0, help_text="number of searches for a compute node")
    next_search = models.DateTimeField(
        null=True, help_text="earliest time of the next search, unless a compute node has capacity before"
    )
    had_host = models.BooleanField(
        default=False, db_default=False, help_text="whether a compute node had capacity at the last search"
    )

    objects = ServerWaitQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.server_id} since {self.since}"

    def record_search(self, now: datetime) -> None:
        """Count a search for capacity, and set the time of the next one, with growing pauses."""
        self.searches += 1
        pause = min(FIRST_PAUSE * 2 ** min(self.searches - 1, 16), MAX_PAUSE)
        over = self.since + settings.PENDING_TIMEOUT
        self.next_search = over if now < over < now + pause else now + pause
