"""The embedded cloud: nodes and servers in our own tables, with capacity, time and failures as a real one has."""

import random
import time

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from cluster.drivers.base import (
    Checkpoint,
    Cloud,
    CloudServer,
    ComputeService,
    ComputeServiceNotFound,
    OperationFailed,
    OperationRefused,
    ServerNotFound,
    proceed,
)
from cluster.drivers.scheduler import choose
from cluster.models import ComputeNode, Server

# Nova's status for each vm_state.
STATUSES = {
    Server.State.ACTIVE: "ACTIVE",
    Server.State.BUILDING: "BUILD",
    Server.State.PAUSED: "PAUSED",
    Server.State.SUSPENDED: "SUSPENDED",
    Server.State.STOPPED: "SHUTOFF",
    Server.State.RESCUED: "RESCUE",
    Server.State.RESIZED: "VERIFY_RESIZE",
    Server.State.SHELVED: "SHELVED",
    Server.State.ERROR: "ERROR",
}
MIGRATING, POWERING_OFF, POWERING_ON = "migrating", "powering-off", "powering-on"
SLICE_SECONDS = 0.1


class EmbeddedCloud(Cloud):
    """Every operation is a short transaction that takes what it needs, a wait without any, and one that ends it.

    While it waits, ``task_state`` says what is going on, and ``destination`` holds the room. Both stay behind if
    the process dies, until `reconcile` or `abort_migration`.
    """

    def find_server(self, server: str) -> CloudServer:
        return describe(self.read(server))

    def find_compute_service(self, host: str) -> ComputeService:
        node = ComputeNode.objects.present().filter(hostname=host).first()
        if node is None:
            raise ComputeServiceNotFound(host)
        return ComputeService(node.hostname, node.status, node.state, node.disabled_reason)

    def live_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.migrate(server, destination, checkpoint, {Server.State.ACTIVE, Server.State.PAUSED})

    def cold_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.migrate(server, destination, checkpoint, {Server.State.ACTIVE, Server.State.STOPPED})

    def migrate(self, server: str, destination: str | None, checkpoint: Checkpoint, states: set[Server.State]) -> None:
        node = self.reserve(server, destination, states)
        self.work(server, checkpoint)
        self.finish(server, MIGRATING, node=node, destination=None)

    def abort_migration(self, server: str) -> CloudServer:
        return self.reconcile(server)

    @transaction.atomic
    def reconcile(self, server: str) -> CloudServer:
        """An embedded operation ends with its process: where it had not come to its end, nothing has happened."""
        row = self.lock(server)
        row.task_state, row.destination = None, None
        row.save_changes(["task_state", "destination"])
        return describe(row)

    def stop(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.switch(server, POWERING_OFF, Server.State.STOPPED, checkpoint)

    def start(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.switch(server, POWERING_ON, Server.State.ACTIVE, checkpoint)

    def switch(self, server: str, task_state: str, state: Server.State, checkpoint: Checkpoint) -> None:
        self.occupy(server, task_state)
        self.work(server, checkpoint)
        self.finish(server, task_state, state=state)

    def enable_compute_service(self, host: str) -> None:
        self.set_status(host, ComputeNode.Status.ENABLED, None)

    def disable_compute_service(self, host: str, reason: str | None = None) -> None:
        self.set_status(host, ComputeNode.Status.DISABLED, reason)

    def set_status(self, host: str, status: ComputeNode.Status, reason: str | None) -> None:
        self.find_compute_service(host)
        self.wait(proceed)
        nodes = ComputeNode.objects.present().filter(hostname=host)
        if not nodes.update(status=status, disabled_reason=reason, updated_at=timezone.now()):
            raise ComputeServiceNotFound(host)

    @transaction.atomic
    def reserve(self, server: str, destination: str | None, states: set[Server.State]) -> ComputeNode:
        """Take room for the server where it goes."""
        row = self.lock_free(server)
        if row.node_id is None:
            raise OperationRefused(f"Instance {server} is on no node")
        if row.state not in states:
            raise OperationRefused(f"Instance {server} can not be migrated so while it is {row.state}")
        row.task_state, row.destination = MIGRATING, choose(row, destination)
        row.save_changes(["task_state", "destination"])
        return row.destination

    @transaction.atomic
    def occupy(self, server: str, task_state: str) -> None:
        row = self.lock_free(server)
        row.task_state = task_state
        row.save_changes(["task_state"])

    def work(self, server: str, checkpoint: Checkpoint) -> None:
        """Let the time pass that the operation takes; undo what it took if the cloud fails."""
        try:
            self.wait(checkpoint)
        except OperationFailed:
            self.reconcile(server)
            raise

    def wait(self, checkpoint: Checkpoint) -> None:
        end = time.monotonic() + settings.EMBEDDED_CLOUD_SECONDS
        checkpoint()
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_SECONDS))
            checkpoint()
        if random.random() < settings.EMBEDDED_CLOUD_FAILURE_RATE:  # noqa: S311 (chance, no secret)
            raise OperationFailed("The embedded cloud failed, as it does at its EMBEDDED_CLOUD_FAILURE_RATE")

    @transaction.atomic
    def finish(self, server: str, task_state: str, **changes: object) -> None:
        """Write the end of an operation, if it is still the one that began.

        Raises:
            ServerNotFound: the server was deleted meanwhile.
            OperationFailed: someone else ended or replaced the operation.
        """
        row = self.lock(server)
        if row.task_state != task_state or ("node" in changes and row.destination != changes["node"]):
            raise OperationFailed(f"Instance {server} was taken out of its operation {task_state}")
        for field, value in changes.items():
            setattr(row, field, value)
        row.task_state = None
        row.save_changes([*changes, "task_state"])

    def read(self, server: str) -> Server:
        row = Server.objects.present().select_related("node").filter(uuid=server).first()
        if row is None:
            raise ServerNotFound(server)
        return row

    def lock(self, server: str) -> Server:
        found = Server.objects.present().filter(uuid=server).select_for_update(no_key=True).first()
        if found is None:
            raise ServerNotFound(server)
        return found

    def lock_free(self, server: str) -> Server:
        """Lock a server that no operation is under way on."""
        row = self.lock(server)
        if row.task_state:
            raise OperationRefused(f"Instance {server} is busy: {row.task_state}")
        return row


def describe(row: Server) -> CloudServer:
    host = row.node.hostname if row.node else None
    return CloudServer(str(row.uuid), row.name, STATUSES[Server.State(row.state)], row.task_state, host)
