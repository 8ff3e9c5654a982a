"""Preconditions of the embedded cloud's operations on servers, nodes and volumes, with messages for users.

The rows may be locked rows of the tables, or exist only in memory, in a preflight.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from cluster.drivers import messages
from cluster.drivers.base import (
    CloudBusy,
    CloudNode,
    CloudServer,
    CloudVolume,
    ComputeService,
    NewServer,
    OperationRefused,
)
from cluster.models import ComputeNode, Flavor, Pool, Server, Volume

# Nova's status for each vm_state.
STATUSES: Mapping[str, str] = {
    Server.State.ACTIVE: "ACTIVE",
    Server.State.BUILDING: "BUILD",
    Server.State.PAUSED: "PAUSED",
    Server.State.SUSPENDED: "SUSPENDED",
    Server.State.STOPPED: "SHUTOFF",
    Server.State.RESCUED: "RESCUE",
    Server.State.RESIZED: "VERIFY_RESIZE",
    Server.State.SHELVED: "SHELVED",
    Server.State.ERROR: "ERROR",
    Server.State.PENDING: "PENDING",
}
RESTING = (Server.State.STOPPED, Server.State.SUSPENDED, Server.State.SHELVED)
# The states that allow an operation; for an evacuation, reboot or rebuild as in Nova.
LIVE_MIGRATABLE = frozenset({Server.State.ACTIVE, Server.State.PAUSED})
COLD_MIGRATABLE = RESIZABLE = frozenset({Server.State.ACTIVE, Server.State.STOPPED})
# The ways to establish that a node does not run: by its power state, or by confirmation of a user.
VERIFY, CONFIRMED = "verify", "confirmed"
NOT_FENCED = messages.NOT_FENCED.text
EVACUABLE = frozenset({Server.State.ACTIVE, Server.State.STOPPED, Server.State.ERROR})
# The states of a server that never ran.
BUILDABLE = frozenset({Server.State.BUILDING, Server.State.PENDING, Server.State.ERROR})
REBUILDABLE = frozenset({Server.State.ACTIVE, Server.State.STOPPED, Server.State.ERROR})
REBOOTABLE = REBUILDABLE | {Server.State.PAUSED, Server.State.SUSPENDED}


def describe_server(row: Server) -> CloudServer:
    host = row.node.hostname if row.node else None
    status = STATUSES[row.state]
    return CloudServer(str(row.uuid), row.name, status, row.task_state, host, row.flavor or None, row.has_run)


def make_row(request: NewServer, flavor: Flavor) -> Server:
    """Return an unsaved row for a new server, without a node."""
    return Server(
        name=request.name,
        token=request.token,
        state=Server.State.BUILDING,
        flavor=flavor.name,
        vcpus=flavor.vcpus,
        memory=flavor.memory,
        disk=flavor.disk,
        flavor_extra_specs=flavor.extra_specs,
        metadata=dict(request.metadata),
        image=request.image or "",
        pinned_az=request.zone or "",
        project_id=request.project,
        user_id=request.user,
    )


def describe_service(node: ComputeNode) -> ComputeService:
    return ComputeService(node.hostname, node.status, node.state, node.disabled_reason, node.forced_down)


def describe_node(node: ComputeNode, running_servers: int) -> CloudNode:
    return CloudNode(str(node.uuid), node.hostname, node.power_state, running_servers)


def require_free(row: Server) -> None:
    """Raise `CloudBusy` if an operation is in progress."""
    if row.task_state:
        raise CloudBusy(messages.SERVER_BUSY.fill(server=row.uuid, task=row.task_state))


def require_never_run(row: Server) -> None:
    if row.has_run or row.state not in BUILDABLE:
        raise OperationRefused(messages.HAS_RUN.fill(server=row.uuid))


def require_status(row: Server, expected: str | None) -> None:
    status = STATUSES[row.state]
    if expected and status != expected:
        raise OperationRefused(messages.OTHER_STATUS.fill(server=row.uuid, status=status, expected=expected))


def require_movable(row: Server, states: frozenset[Server.State]) -> None:
    require_node(row)
    if row.state not in states:
        raise OperationRefused(messages.NOT_MIGRATABLE.fill(server=row.uuid, state=row.state))


def require_evacuable(row: Server) -> None:
    node = require_node(row)
    if node.state == ComputeNode.State.UP:
        raise OperationRefused(messages.SERVICE_IN_USE.fill(node=node.hostname))
    if row.state not in EVACUABLE:
        raise OperationRefused(messages.NOT_EVACUABLE.fill(server=row.uuid, state=row.state))


def require_resizable(row: Server, flavor: Flavor) -> ComputeNode:
    """Return the node of a server. Raises: `OperationRefused` if it cannot be resized to this flavor."""
    node = require_node(row)
    if row.state not in RESIZABLE:
        raise OperationRefused(messages.NOT_RESIZABLE.fill(server=row.uuid, state=row.state))
    if row.flavor == flavor.name:
        raise OperationRefused(messages.HAS_FLAVOR.fill(server=row.uuid, flavor=flavor.name))
    if flavor.disk < row.disk:
        raise OperationRefused(messages.DISK_TOO_SMALL.fill(flavor=flavor.name, server=row.uuid))
    return node


def require_reboot(row: Server) -> ComputeNode:
    """Return the node of a server. Raises: `OperationRefused` if it cannot be rebooted."""
    if row.state not in REBOOTABLE:
        raise OperationRefused(messages.NOT_REBOOTABLE.fill(server=row.uuid, state=row.state))
    return require_node(row)


def require_rebuild(row: Server) -> ComputeNode:
    """Return the node of a server. Raises: `OperationRefused` if it cannot be rebuilt."""
    if row.state not in REBUILDABLE:
        raise OperationRefused(messages.NOT_REBUILDABLE.fill(server=row.uuid, state=row.state))
    return require_node(row)


def state_after_rebuild(row: Server) -> Server.State:
    """Return the state of a server after a rebuild or an evacuation: a stopped server stays stopped."""
    return Server.State.STOPPED if row.state == Server.State.STOPPED else Server.State.ACTIVE


def require_node(row: Server) -> ComputeNode:
    if row.node is None:
        raise OperationRefused(messages.WITHOUT_NODE.fill(server=row.uuid))
    return row.node


def require_idle(node: ComputeNode, running_servers: int) -> None:
    if running_servers:
        raise OperationRefused(messages.describe_running(node.hostname, running_servers))


def require_down(node: ComputeNode) -> None:
    """Raise `OperationRefused` if a node to be fenced is up."""
    if node.state == ComputeNode.State.UP:
        raise OperationRefused(messages.NODE_UP.fill(node=node.hostname))


def require_power(node: ComputeNode) -> None:
    if node.power_state == ComputeNode.PowerState.OFF:
        raise OperationRefused(messages.NODE_OFF.fill(node=node.hostname))


def change_entries(
    metadata: Mapping[str, str], changed: Mapping[str, str], removed: Collection[str]
) -> dict[str, str]:
    """Return metadata with some entries changed and others removed."""
    return {**{name: value for name, value in metadata.items() if name not in removed}, **changed}


def describe_volume(row: Volume, servers: Iterable[object]) -> CloudVolume:
    return CloudVolume(
        str(row.uuid),
        row.name,
        row.status,
        row.pool.name if row.pool else None,
        row.volume_type.name if row.volume_type else None,
        tuple(str(server) for server in servers),
    )


def require_free_volume(row: Volume) -> None:
    """Raise `CloudBusy` if an operation is in progress, `OperationRefused` if the status forbids a move."""
    if row.migration_status:
        raise CloudBusy(messages.VOLUME_BUSY.fill(volume=row.uuid, status=row.migration_status))
    if row.status not in {Volume.Status.AVAILABLE, Volume.Status.IN_USE}:
        raise OperationRefused(messages.NOT_MOVABLE.fill(volume=row.uuid, status=row.status))


def require_pool(row: Volume) -> Pool:
    if row.pool is None:
        raise OperationRefused(messages.WITHOUT_POOL.fill(volume=row.uuid))
    return row.pool


def require_unpinned(row: Volume) -> None:
    """Raise `OperationRefused` if a volume cannot leave its pool."""
    require_pool(row)
    if row.has_snapshots:
        raise OperationRefused(messages.HAS_SNAPSHOTS.fill(volume=row.uuid))


def require_migratable_volume(row: Volume, destination: Pool, is_served: bool) -> None:
    """Raise `OperationRefused` if a volume cannot be migrated to a pool.

    Args:
        is_served: whether the pool accepts the type of the volume.
    """
    if row.pool_id == destination.pk:
        raise OperationRefused(messages.ALREADY_IN_POOL.fill(volume=row.uuid, pool=destination.name))
    require_unpinned(row)
    if row.volume_type and not is_served:
        raise OperationRefused(messages.POOL_WITHOUT_TYPE.fill(pool=destination.name, type=row.volume_type.name))


def choose_pool_with_most_free(row: Volume, pools: Sequence[Pool]) -> Pool:
    """Return the pool with the most virtual free capacity.

    Raises:
        OperationRefused: there is no pool, or none has enough capacity.
    """
    if not pools:
        raise OperationRefused(messages.NO_STORAGE_NODE.fill(volume=row.uuid))
    best = max(pools, key=lambda pool: pool.virtual_free)
    if best.virtual_free < row.size:
        raise OperationRefused(
            messages.POOL_FULL.fill(pool=best.name, free=max(best.virtual_free, 0), needed=row.size)
        )
    return best
