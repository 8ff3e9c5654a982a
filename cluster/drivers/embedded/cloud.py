"""The driver of the embedded cloud, which simulates capacity, delays and failures in the site's tables."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from cluster.drivers import messages
from cluster.drivers.base import (
    Checkpoint,
    CloudFlavor,
    CloudNode,
    CloudServer,
    ComputeService,
    ComputeServiceNotFound,
    NodeNotFound,
    OperationFailed,
    ServerNotFound,
    proceed,
)
from cluster.drivers.embedded.balancing import EmbeddedBalancer
from cluster.drivers.embedded.delay import pass_time
from cluster.drivers.embedded.lifecycle import REBUILDING, EmbeddedLifecycle, find_flavor
from cluster.drivers.embedded.storage import EmbeddedStorage
from cluster.drivers.ownership import OWNER, may_end, may_undo, require_attempt
from cluster.drivers.rules import (
    COLD_MIGRATABLE,
    LIVE_MIGRATABLE,
    RESTING,
    describe_node,
    describe_server,
    describe_service,
    require_down,
    require_evacuable,
    require_free,
    require_idle,
    require_movable,
    require_power,
    require_resizable,
    state_after_rebuild,
)
from cluster.drivers.scheduler import choose_destination, read_size, require_growth
from cluster.models import ComputeNode, Flavor, Server

MIGRATING, POWERING_OFF, POWERING_ON, RESIZING = "migrating", "powering-off", "powering-on", "resizing"


class EmbeddedCloud(EmbeddedLifecycle, EmbeddedStorage):
    """The embedded cloud. An operation is a transaction that reserves capacity, a wait, and a second transaction.

    During the wait, ``task_state`` names the operation, and ``destination`` reserves capacity. If the process dies,
    both stay until `reconcile` or `abort_migration`.
    """

    def make_balancer(self) -> EmbeddedBalancer:
        return EmbeddedBalancer()

    def find_server(self, server: str) -> CloudServer:
        return describe_server(self.read(server))

    def find_compute_service(self, host: str) -> ComputeService:
        node = ComputeNode.objects.present().filter(hostname=host).first()
        if node is None:
            raise ComputeServiceNotFound(host)
        return describe_service(node)

    def live_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.migrate(server, destination, checkpoint, LIVE_MIGRATABLE)

    def cold_migrate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        self.migrate(server, destination, checkpoint, COLD_MIGRATABLE)

    def migrate(
        self, server: str, destination: str | None, checkpoint: Checkpoint, states: frozenset[Server.State]
    ) -> None:
        row = self.reserve(server, destination, MIGRATING, partial(require_movable, states=states))
        self.wait(server, checkpoint)
        self.finish(server, MIGRATING, node=row.destination, destination=None)

    def evacuate(self, server: str, destination: str | None = None, checkpoint: Checkpoint = proceed) -> None:
        row = self.reserve(server, destination, REBUILDING, require_evacuable)
        self.wait(server, checkpoint)
        after = {"state": state_after_rebuild(row), "fault": None}
        self.finish(server, REBUILDING, node=row.destination, destination=None, **after)

    def abort_migration(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        return self.reconcile(server)

    @transaction.atomic
    def reconcile(self, server: str, checkpoint: Checkpoint = proceed) -> CloudServer:
        """Release the reservation. An embedded operation ends with its process, and has no effect until its end."""
        row = self.lock(server)
        if may_undo(row):
            row.task_state, row.operation_owner, row.destination, row.new_flavor = None, "", None, None
            row.save_changes(["task_state", "operation_owner", "destination", "new_flavor"])
        return describe_server(row)

    def stop(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.switch(server, POWERING_OFF, Server.State.STOPPED, checkpoint)

    def start(self, server: str, checkpoint: Checkpoint = proceed) -> None:
        self.switch(server, POWERING_ON, Server.State.ACTIVE, checkpoint)

    def switch(self, server: str, task_state: str, state: Server.State, checkpoint: Checkpoint) -> None:
        self.begin_switch(server, task_state)
        self.wait(server, checkpoint)
        self.finish(server, task_state, state=state)

    def find_flavor(self, flavor: str) -> CloudFlavor:
        row = find_flavor(flavor)
        return CloudFlavor(row.flavor_id, row.name)

    def resize(self, server: str, flavor: str, checkpoint: Checkpoint = proceed) -> None:
        """Resize a server on its node. Raises: `NoValidHost` if the node lacks capacity."""
        new_flavor = self.reserve_size(server, flavor)
        self.wait(server, checkpoint)
        specs = {"flavor": new_flavor.name, "flavor_extra_specs": new_flavor.extra_specs}
        self.finish(server, RESIZING, **read_size(new_flavor), **specs, new_flavor=None)

    @transaction.atomic
    def reserve_size(self, server: str, flavor: str) -> Flavor:
        """Reserve the additional capacity that a resize needs, and return the flavor."""
        row, new_flavor = self.lock_free(server), find_flavor(flavor)
        node = require_resizable(row, new_flavor)
        require_growth(row, new_flavor, node.hostname)
        row.task_state, row.operation_owner, row.new_flavor = RESIZING, OWNER.get(), new_flavor
        row.save_changes(["task_state", "operation_owner", "new_flavor"])
        require_attempt()
        return new_flavor

    def find_node(self, node: str) -> CloudNode:
        row = find_compute_node(node)
        return describe_node(row, count_running(row))

    def power_on(self, node: str, checkpoint: Checkpoint = proceed) -> None:
        find_compute_node(node)
        pass_time(checkpoint)
        self.set_power(node, ComputeNode.PowerState.ON, ComputeNode.State.UP)

    def power_off(self, node: str, checkpoint: Checkpoint = proceed, *, is_fencing: bool = False) -> None:
        require = require_down if is_fencing else require_empty
        require(find_compute_node(node))
        pass_time(checkpoint)
        self.set_power(node, ComputeNode.PowerState.OFF, ComputeNode.State.DOWN, require)

    def find_power_state(self, host: str) -> str | None:
        return ComputeNode.objects.present().filter(hostname=host).values_list("power_state", flat=True).first()

    @transaction.atomic
    def set_power(
        self,
        node: str,
        power_state: ComputeNode.PowerState,
        state: ComputeNode.State,
        require: Callable[[ComputeNode], None] | None = None,
    ) -> None:
        """Set the power state of a node and the state of its compute service.

        The lock of the node keeps servers from being scheduled to it meanwhile.
        """
        row = find_compute_node(node, lock=True)
        if require:
            require(row)
        row.power_state, row.state = power_state, state
        row.save_changes(["power_state", "state"])
        require_attempt()

    def enable_compute_service(self, host: str) -> None:
        self.set_status(host, ComputeNode.Status.ENABLED, None)

    def disable_compute_service(self, host: str, reason: str | None = None) -> None:
        self.set_status(host, ComputeNode.Status.DISABLED, reason)

    def set_status(self, host: str, status: ComputeNode.Status, reason: str | None) -> None:
        self.find_compute_service(host)
        pass_time(proceed)
        nodes = ComputeNode.objects.present().filter(hostname=host)
        with transaction.atomic():
            if not nodes.update(status=status, disabled_reason=reason, updated_at=timezone.now()):
                raise ComputeServiceNotFound(host)
            require_attempt()

    @transaction.atomic
    def reserve(
        self, server: str, destination: str | None, task_state: str, require: Callable[[Server], object]
    ) -> Server:
        """Begin an operation that reserves capacity for a server on its destination, and return its row."""
        row = self.lock_free(server)
        require(row)
        row.task_state, row.operation_owner = task_state, OWNER.get()
        row.destination = choose_destination(row, destination)
        row.save_changes(["task_state", "operation_owner", "destination"])
        require_attempt()
        return row

    @transaction.atomic
    def begin_switch(self, server: str, task_state: str) -> None:
        row = self.lock_free(server)
        if task_state == POWERING_ON and row.node:
            require_power(find_compute_node(str(row.node.uuid), lock=True))
        row.task_state, row.operation_owner = task_state, OWNER.get()
        row.save_changes(["task_state", "operation_owner"])
        require_attempt()

    def wait(self, server: str, checkpoint: Checkpoint) -> None:
        """Wait for the simulated duration of an operation, and release its reservation if the operation fails."""
        try:
            pass_time(checkpoint)
        except OperationFailed:
            self.reconcile(server)
            raise

    @transaction.atomic
    def finish(self, server: str, task_state: str, **changes: object) -> None:
        """Write the result of an operation, if it is still in progress.

        Raises:
            ServerNotFound: the server was deleted meanwhile.
            OperationFailed: another process ended or replaced the operation.
        """
        row = self.lock(server)
        if (
            not may_end(row)
            or row.task_state != task_state
            or ("node" in changes and row.destination != changes["node"])
        ):
            raise OperationFailed(messages.TAKEN_OUT.fill(server=server, operation=task_state))
        for field, value in changes.items():
            setattr(row, field, value)
        row.task_state, row.operation_owner = None, ""
        row.save_changes([*changes, "task_state", "operation_owner"])

    def read(self, server: str) -> Server:
        row = Server.objects.present().select_related("node").filter(uuid=server).first()
        if row is None:
            raise ServerNotFound(server)
        return row

    def lock(self, server: str) -> Server:
        row = Server.objects.present().filter(uuid=server).select_for_update(no_key=True).first()
        if row is None:
            raise ServerNotFound(server)
        return row

    def lock_free(self, server: str) -> Server:
        """Lock a server. Raises: `CloudBusy` if an operation on it is in progress."""
        row = self.lock(server)
        require_free(row)
        return row


def find_compute_node(node: str, lock: bool = False) -> ComputeNode:
    try:
        nodes = ComputeNode.objects.present().filter(uuid=UUID(node))
    except ValueError as malformed:
        raise NodeNotFound(node) from malformed
    row = (nodes.select_for_update(no_key=True) if lock else nodes).first()
    if row is None:
        raise NodeNotFound(node)
    return row


def require_empty(node: ComputeNode) -> None:
    """Raise `OperationRefused` if servers run on a node."""
    require_idle(node, count_running(node))


def count_running(node: ComputeNode) -> int:
    """Count the servers that run on a node, that an operation is changing there, or that are migrating to it."""
    resting = Q(node=node, state__in=RESTING, task_state=None)
    return Server.objects.present().filter(Q(node=node) | Q(destination=node)).exclude(resting).count()
