"""Creation, building, reboots, rebuilds and deletion of servers in the embedded cloud."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from cluster.drivers import messages
from cluster.drivers.base import (
    Checkpoint,
    Cloud,
    CloudBusy,
    CloudError,
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
from cluster.drivers.embedded.delay import pass_time
from cluster.drivers.ownership import OWNER, may_end, may_undo, require_attempt
from cluster.drivers.quotas import QuotaExceeded, demand_of, require_quota
from cluster.drivers.rules import (
    change_entries,
    describe_server,
    make_row,
    require_free,
    require_never_run,
    require_node,
    require_power,
    require_reboot,
    require_rebuild,
    require_status,
    state_after_rebuild,
)
from cluster.drivers.scheduler import choose_destination, find_host_of
from cluster.models import ComputeNode, Flavor, Server, Volume, VolumeAttachment
from cluster.notifications import (
    SELECTION,
    InstanceNotifications,
    SchedulerNotifications,
    announce_wait_end,
    server_pending,
)
from watcher_site.database.uniqueness import refuse_taken
from watcher_site.messages import cut
from watcher_site.outbox.kinds import UPDATE
from watcher_site.outbox.writing import announce

State = Server.State
SPAWNING, DELETING, REBOOTING, REBUILDING = "spawning", "deleting", "rebooting", "rebuilding"
# The longest pause between two searches for free capacity; a deferred action usually searches more often.
MAX_PAUSE = timedelta(minutes=1)
FAULT_CODE = 500


class EmbeddedLifecycle(Cloud, ABC):
    """The part of `EmbeddedCloud` that creates, builds, repairs and deletes servers.

    A new server reserves its capacity from the beginning, and is BUILDING until it runs. It stays BUILDING if its
    process dies. Any name of an image is accepted.
    """

    @abstractmethod
    def lock(self, server: str) -> Server:
        """Return the locked row of a server. Raises: `ServerNotFound`."""

    @abstractmethod
    def wait(self, server: str, checkpoint: Checkpoint) -> None:
        """Wait for the simulated duration of an operation."""

    @abstractmethod
    def finish(self, server: str, task_state: str, **changes: object) -> None:
        """Write the result of an operation, if it is still in progress."""

    def create_server(self, request: NewServer, checkpoint: Checkpoint = proceed) -> CloudServer:
        server, is_new = self.begin_creation(request)
        if is_new:
            try:
                pass_time(checkpoint)
            except OperationFailed:
                self.finish_deletion(server, SPAWNING)
                raise
            self.finish(server, SPAWNING, state=Server.State.ACTIVE, launched_at=timezone.now())
        return self.require_created(server)

    def require_created(self, server: str) -> CloudServer:
        """Return a server whose creation succeeded. Delete it if a user ended its wait for capacity.

        Raises:
            ServerNotFound: there is no such server.
            OperationFailed: its wait was ended; it was deleted.
            WaitingForCapacity: it is still PENDING.
        """
        row = Server.objects.present().select_related("node").filter(uuid=server).first()
        if row is None:
            raise ServerNotFound(server)
        if row.state == Server.State.PENDING:
            raise WaitingForCapacity(server, timezone.now() + MAX_PAUSE)
        if row.state == Server.State.ERROR and not row.has_run:
            self.delete_server(server)
            fault = (row.fault or {}).get("message")
            raise OperationFailed(fault or messages.CAPACITY_NOT_PROVIDED.fill(server=server))
        return describe_server(row)

    def find_created(self, name: str, token: str, project: str = "") -> CloudServer | None:
        row = Server.objects.present().filter(token=token).select_related("node").first()
        return describe_server(row) if row else None

    @transaction.atomic
    def begin_creation(self, request: NewServer) -> tuple[str, bool]:
        """Return the UUID of a token's server, and whether this process must create it."""
        row = Server.objects.present().select_for_update(no_key=True).filter(token=request.token).first()
        if row is None:
            return self.insert(request)
        if row.state != Server.State.BUILDING:
            return str(row.uuid), False
        if row.task_state and not may_undo(row):
            busy = CloudBusy(messages.SERVER_BUSY.fill(server=row.uuid, task=row.task_state))
            # Another process is building the server, which waited for capacity.
            busy.until = timezone.now() + MAX_PAUSE if request.may_wait else None
            raise busy
        row.task_state, row.operation_owner = SPAWNING, OWNER.get()
        row.save_changes(["task_state", "operation_owner"])
        require_attempt()
        return str(row.uuid), True

    def insert(self, request: NewServer) -> tuple[str, bool]:
        """Insert a new server on a node with capacity, or as PENDING; return its UUID and whether it has a node.

        Raises:
            NoValidHost: there is not enough capacity, and the server may not be PENDING.
            CloudBusy: another process inserted it at the same time.
            OperationRefused: the project's quota does not allow it.
        """
        row, no_host = make_row(request, find_flavor(request.flavor)), None
        try:
            require_quota(row.project_id, demand_of(row.vcpus, row.memory))
        except QuotaExceeded as problem:
            raise OperationRefused(str(problem)) from problem
        try:
            row.node = choose_destination(row, request.host, request.zone)
            row.task_state, row.operation_owner = SPAWNING, OWNER.get()
        except NoValidHost as problem:
            if not (request.may_wait and settings.USE_PENDING_STATE):
                raise
            no_host = problem
        refusal = CloudBusy(messages.BEING_CREATED.fill(token=request.token))
        with refuse_taken(Server, "token", refusal):
            row.save()
        if no_host:
            store_build_failure(row, no_host, Server.State.PENDING)
        require_attempt()
        return str(row.uuid), no_host is None

    def build_server(self, server: str, checkpoint: Checkpoint = proceed, host: str | None = None) -> None:
        if no_host := self.begin_build(server, host):
            raise no_host
        try:
            pass_time(checkpoint)
        except OperationFailed as failure:
            self.fail_build(server, failure)
            raise
        after = {"launched_at": timezone.now(), "fault": None, "unhealthy_reason": None}
        self.finish(server, SPAWNING, state=State.ACTIVE, **after)

    @transaction.atomic
    def begin_build(self, server: str, host: str | None) -> NoValidHost | None:
        """Reserve capacity on a node for a server that never ran, or continue an earlier attempt.

        Without capacity, return the reason. It is stored under the same lock, so that no other process builds the
        server meanwhile.
        """
        row = self.lock(server)
        if row.task_state != SPAWNING or not may_undo(row):
            require_free(row)
        require_never_run(row)
        if row.node_id is None:
            try:
                row.node = choose_destination(row, host, row.pinned_az or None)
            except NoValidHost as no_host:
                store_build_failure(row, no_host, State.PENDING if settings.USE_PENDING_STATE else State.ERROR)
                require_attempt()
                return no_host
        before = row.state
        row.state, row.task_state, row.operation_owner = State.BUILDING, SPAWNING, OWNER.get()
        row.save_changes(["node", "state", "task_state", "operation_owner"])
        announce_wait_end(row, before)
        require_attempt()
        return None

    @transaction.atomic
    def fail_build(self, server: str, problem: OperationFailed) -> None:
        """Store the failure of a build, if the build is still in progress."""
        row = self.lock(server)
        if row.state != State.BUILDING or row.task_state != SPAWNING or not may_end(row):
            raise OperationFailed(messages.TAKEN_OUT.fill(server=server, operation=SPAWNING))
        store_build_failure(row, problem, State.ERROR)

    def find_host(self, server: str) -> str | None:
        return find_host_of(server)

    @transaction.atomic
    def reset_state(self, server: str, state: str, *, reason: str | None = None, expected: str | None = None) -> None:
        """Set the state of a server, as Nova does, even if an operation is in progress.

        A server that is PENDING for lack of capacity has never run, and cannot be set to ACTIVE.
        """
        row = self.lock(server)
        require_status(row, expected)
        before = row.state
        if state == State.ACTIVE:
            require_node(row)
        row.state, row.task_state, row.operation_owner = State(state), None, ""
        row.destination, row.new_flavor = None, None
        if state == State.ACTIVE:
            row.fault, row.unhealthy_reason = None, None
        elif reason:
            row.fault = make_fault(reason)
        changed = ("state", "task_state", "operation_owner", "destination", "new_flavor", "fault", "unhealthy_reason")
        row.save_changes(changed)
        announce_wait_end(row, before)
        require_attempt()

    def delete_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.begin_deletion(server)
        try:
            pass_time(checkpoint)
        except OperationFailed:
            self.reconcile(server)
            raise
        # Another process may have deleted it at the same time.
        with suppress(ServerNotFound):
            self.finish_deletion(server, DELETING)

    @transaction.atomic
    def begin_deletion(self, server: str) -> None:
        """Replace any operation in progress by the deletion."""
        row = self.lock(server)
        row.task_state, row.operation_owner, row.destination, row.new_flavor = DELETING, OWNER.get(), None, None
        row.save_changes(["task_state", "operation_owner", "destination", "new_flavor"])
        require_attempt()

    @transaction.atomic
    def finish_deletion(self, server: str, task_state: str) -> None:
        """Delete the server and release its volumes, if the operation is still in progress."""
        row = self.lock(server)
        if row.task_state != task_state or not may_end(row):
            raise OperationFailed(messages.TAKEN_OUT.fill(server=server, operation=task_state))
        Server.objects.filter(pk=row.pk).soft_delete()
        release_volumes(row)
        announce_wait_end(row, row.state)

    def reboot_server(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.begin_repair(server, REBOOTING, require_reboot)
        self.wait(server, checkpoint)
        self.finish(server, REBOOTING, state=Server.State.ACTIVE)

    def rebuild_server(self, server: str, image: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        row = self.begin_repair(server, REBUILDING, require_rebuild)
        self.wait(server, checkpoint)
        after = {"state": state_after_rebuild(row), "image": image or row.image, "unhealthy_reason": None}
        self.finish(server, REBUILDING, **after)

    @transaction.atomic
    def begin_repair(self, server: str, task_state: str, require: Callable[[Server], ComputeNode]) -> Server:
        """Begin an operation on a free server, or on one that an earlier attempt left in the same operation."""
        row = self.lock(server)
        if row.task_state != task_state or not may_undo(row):
            require_free(row)
        node = require(row)
        # The lock keeps the node from being switched off.
        require_power(ComputeNode.objects.select_for_update(no_key=True).get(pk=node.pk))
        row.task_state, row.operation_owner = task_state, OWNER.get()
        row.save_changes(["task_state", "operation_owner"])
        require_attempt()
        return row

    @transaction.atomic
    def change_metadata(self, server: str, changed: Mapping[str, str], removed: Collection[str] = ()) -> None:
        row = self.lock(server)
        row.metadata = change_entries(row.metadata, changed, removed)
        row.save_changes(["metadata"])
        require_attempt()


def store_build_failure(row: Server, problem: CloudError, state: State) -> None:
    """Store on a locked server why it could not be built, and remove its node (as Nova's ``_bury_in_cell0``)."""
    row.node, row.task_state, row.operation_owner = None, None, ""
    # A PENDING server that finds no host again causes no notification.
    before, is_changed = row.state, row.state != state
    row.state, row.fault = state, make_fault(str(problem))
    row.save_changes(["node", "state", "task_state", "operation_owner", "fault"])
    if is_changed and state == State.PENDING:
        announce(SchedulerNotifications.name, SELECTION, [row.pk])
        announce(InstanceNotifications.name, [UPDATE], [row.pk], before)
        transaction.on_commit(partial(server_pending.send, sender=Server, server=str(row.uuid)))


def make_fault(reason: str) -> dict[str, Any]:
    """Return the fault of a server that could not be built, in Nova's format."""
    return {"code": FAULT_CODE, "message": cut(reason), "created": timezone.now().isoformat(), "details": None}


def release_volumes(server: Server) -> None:
    attachments = VolumeAttachment.objects.present()
    volumes = list(attachments.filter(server=server).values_list("volume", flat=True))
    attachments.filter(server=server).soft_delete()
    still_used = attachments.filter(volume__in=volumes).values("volume")
    released = Volume.objects.filter(pk__in=volumes, status=Volume.Status.IN_USE).exclude(pk__in=still_used)
    released.update(status=Volume.Status.AVAILABLE)


def find_flavor(flavor: str) -> Flavor:
    """Return the flavor with this id, else the one with this name. Raises: `FlavorNotFound`."""
    rows = list(Flavor.objects.present().filter(Q(flavor_id=flavor) | Q(name=flavor)))
    if not rows:
        raise FlavorNotFound(flavor)
    return next((row for row in rows if row.flavor_id == flavor), rows[0])
