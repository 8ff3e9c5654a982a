"""Creation and deletion of servers in the embedded cloud."""

from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from cluster.drivers.base import (
    Checkpoint,
    Cloud,
    CloudBusy,
    CloudServer,
    FlavorNotFound,
    NewServer,
    NoValidHost,
    OperationFailed,
    OperationRefused,
    ServerNotFound,
    WaitingForCapacity,
    proceed,
)
from cluster.drivers.embedded.building import bury
from cluster.drivers.embedded.delay import pass_time
from cluster.drivers.ownership import OWNER, may_end, may_undo, require_attempt
from cluster.drivers.quotas import QuotaExceeded, demand_of, require_quota
from cluster.drivers.rules import describe_server, make_row
from cluster.drivers.scheduler import choose_destination
from cluster.models import Flavor, Server, Volume, VolumeAttachment
from cluster.notifications import tell_wait_ended
from watcher_site.database.uniqueness import refuse_taken

SPAWNING, DELETING = "spawning", "deleting"
# The longest time between two looks for free capacity; a deferred action usually looks more often.
NEXT_LOOK = timedelta(minutes=1)


class EmbeddedLifecycle(Cloud, ABC):
    """The part of `EmbeddedCloud` that creates and deletes servers.

    A server that is being created has its capacity reserved from the beginning. Until it runs it is BUILDING; if no
    process works on it, its creation was interrupted. There are no images here: any name is accepted.
    """

    @abstractmethod
    def lock(self, server: str) -> Server:
        """Raises: `ServerNotFound`."""

    @abstractmethod
    def finish(self, server: str, task_state: str, **changes: object) -> None:
        """Write the end of an operation, if it is still the one that began."""

    def create_server(self, wanted: NewServer, checkpoint: Checkpoint = proceed) -> CloudServer:
        server, is_new = self.begin_creation(wanted)
        if is_new:
            try:
                pass_time(checkpoint)
            except OperationFailed:
                self.end(server, SPAWNING)
                raise
            self.finish(server, SPAWNING, state=Server.State.ACTIVE, launched_at=timezone.now())
        return self.created(server)

    def created(self, server: str) -> CloudServer:
        """Return a server that was created, unless it is PENDING or its waiting was ended.

        Raises:
            ServerNotFound: there is no such server.
            OperationFailed: its waiting was ended; it was deleted.
            WaitingForCapacity: it is still PENDING.
        """
        row = Server.objects.present().select_related("node").filter(uuid=server).first()
        if row is None:
            raise ServerNotFound(server)
        if row.state == Server.State.PENDING:
            raise WaitingForCapacity(server, timezone.now() + NEXT_LOOK)
        if row.state == Server.State.ERROR and not row.has_run:
            self.delete_server(server)
            raise OperationFailed((row.fault or {}).get("message") or f"No room was made for instance {server}")
        return describe_server(row)

    def find_created(self, name: str, token: str) -> CloudServer | None:
        row = Server.objects.present().filter(token=token).select_related("node").first()
        return describe_server(row) if row else None

    def delete_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.begin_deletion(server)
        try:
            pass_time(checkpoint)
        except OperationFailed:
            self.reconcile(server)
            raise
        # Two may delete it at once: it is gone when the first is done.
        with suppress(ServerNotFound):
            self.end(server, DELETING)

    @transaction.atomic
    def begin_creation(self, wanted: NewServer) -> tuple[str, bool]:
        """Return the server of a token, and whether it is still to be created by this process."""
        row = Server.objects.present().select_for_update(no_key=True).filter(token=wanted.token).first()
        if row is None:
            return self.insert(wanted)
        if row.state != Server.State.BUILDING:
            return str(row.uuid), False
        if row.task_state and not may_undo(row):
            busy = CloudBusy(f"Instance {row.uuid} is busy: {row.task_state}")
            # Capacity became free, and another process is building the server.
            busy.until = timezone.now() + NEXT_LOOK if wanted.may_wait else None
            raise busy
        row.task_state, row.operation_owner = SPAWNING, OWNER.get()
        row.save_changes(["task_state", "operation_owner"])
        require_attempt()
        return str(row.uuid), True

    def insert(self, wanted: NewServer) -> tuple[str, bool]:
        """Insert a new server where there is capacity, or as PENDING; return its UUID and whether to create it.

        Raises:
            NoValidHost: there is not enough capacity, and it may not be PENDING.
            CloudBusy: another process inserted it at the same time.
            OperationRefused: the project's quota does not allow it.
        """
        row, nowhere = make_row(wanted, find_flavor(wanted.flavor)), None
        try:
            require_quota(row.project_id, demand_of(row.vcpus, row.memory))
        except QuotaExceeded as problem:
            raise OperationRefused(str(problem)) from problem
        try:
            row.node = choose_destination(row, wanted.host, wanted.zone)
            row.task_state, row.operation_owner = SPAWNING, OWNER.get()
        except NoValidHost as problem:
            if not (wanted.may_wait and settings.USE_PENDING_STATE):
                raise
            nowhere = problem
        taken = CloudBusy(f"An instance for {wanted.token} is just being created")
        with refuse_taken(Server, "token", taken):
            row.save()
        if nowhere:
            bury(row, nowhere, Server.State.PENDING)
        require_attempt()
        return str(row.uuid), nowhere is None

    @transaction.atomic
    def begin_deletion(self, server: str) -> None:
        """Take the server out of whatever is under way on it."""
        row = self.lock(server)
        row.task_state, row.operation_owner, row.destination, row.new_flavor = DELETING, OWNER.get(), None, None
        row.save_changes(["task_state", "operation_owner", "destination", "new_flavor"])
        require_attempt()

    @transaction.atomic
    def end(self, server: str, task_state: str) -> None:
        """Delete the server if it is still in the operation that began, and release its volumes."""
        row = self.lock(server)
        if row.task_state != task_state or not may_end(row):
            raise OperationFailed(f"Instance {server} was taken out of its operation {task_state}")
        Server.objects.filter(pk=row.pk).soft_delete()
        release_volumes(row)
        tell_wait_ended(row, row.state)


def release_volumes(server: Server) -> None:
    attachments = VolumeAttachment.objects.present()
    volumes = list(attachments.filter(server=server).values_list("volume", flat=True))
    attachments.filter(server=server).soft_delete()
    still_used = attachments.filter(volume__in=volumes).values("volume")
    released = Volume.objects.filter(pk__in=volumes, status=Volume.Status.IN_USE).exclude(pk__in=still_used)
    released.update(status=Volume.Status.AVAILABLE)


def find_flavor(flavor: str) -> Flavor:
    """Return the flavor of this id, else that of this name."""
    rows = list(Flavor.objects.present().filter(Q(flavor_id=flavor) | Q(name=flavor)))
    if not rows:
        raise FlavorNotFound(flavor)
    return next((row for row in rows if row.flavor_id == flavor), rows[0])
