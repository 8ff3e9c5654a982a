"""Conversion of openstacksdk's resources of Nova and Cinder to values of the site's columns."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Any

from django.conf import settings

from cluster.drivers.openstack.operations import NO_VALID_HOST
from cluster.models import ComputeNode, Server, StorageNode
from cluster.models.compute import DEFAULT_ZONE
from cluster.synchronization.cloud_contents import Item

# The columns for the total, the reserved amount and the allocation ratio of each resource class.
INVENTORIES = {
    "VCPU": ("vcpus", "vcpu_reserved", "vcpu_ratio"),
    "MEMORY_MB": ("memory", "memory_mb_reserved", "memory_ratio"),
    "DISK_GB": ("disk", "disk_gb_reserved", "disk_ratio"),
}
BROKEN = "ERROR"
POWER_STATES = {"power on": str(ComputeNode.PowerState.ON), "power off": str(ComputeNode.PowerState.OFF)}
# Nova's states without an equal state in the site's table.
STATES = {"shelved_offloaded": Server.State.SHELVED, "soft-delete": Server.State.STOPPED}


def host_of(hypervisor: Any) -> str:
    """Return the host of a hypervisor's nova-compute service, by which services and servers refer to it."""
    return str((hypervisor.service_details or {}).get("host") or hypervisor.name)


def machine_of(hypervisor: Any, machines: Iterable[Any]) -> Any:
    """Return Ironic's node of a hypervisor by its ``extra.compute_node_id``, else by its name, or None."""
    names = {hypervisor.name, (hypervisor.service_details or {}).get("host")}
    machines = list(machines)
    matches = (machine for machine in machines if (machine.extra or {}).get("compute_node_id") == hypervisor.id)
    return next(matches, None) or next((machine for machine in machines if machine.name in names), None)


def node_item(hypervisor: Any, service: Any, inventories: Mapping[str, Any], power_state: str | None) -> Item:
    """Return the columns of a compute node that the cloud reports."""
    item: Item = {
        "uuid": hypervisor.id,
        "hostname": host_of(hypervisor),
        "status": match_choice(ComputeNode.Status, hypervisor.status, ComputeNode.Status.DISABLED),
        "state": match_choice(ComputeNode.State, hypervisor.state, ComputeNode.State.DOWN),
        "disabled_reason": (hypervisor.service_details or {}).get("disabled_reason"),
        "forced_down": bool(service and service.is_forced_down),
        "zone": (service and service.availability_zone) or DEFAULT_ZONE,
        "vcpus": hypervisor.vcpus or 0,
        "memory": hypervisor.memory_size or 0,
        "disk": hypervisor.local_disk_size or 0,
    }
    units: dict[str, dict[str, int]] = {}
    for name, (total, reserved, ratio) in INVENTORIES.items():
        if inventory := inventories.get(name):
            item |= {total: inventory.total, reserved: inventory.reserved, ratio: inventory.allocation_ratio}
            units[total] = {rule: getattr(inventory, rule) for rule in ("min_unit", "max_unit", "step_size")}
    if units:
        item["allocation_units"] = units
    return item | ({"power_state": power_state} if power_state else {})


def server_item(server: Any, is_pending: bool) -> Item:
    """Return the columns of a server; ``is_pending`` makes its state PENDING instead of ERROR.

    A root disk on a volume uses no disk of the node.
    """
    flavor, is_from_volume = server.flavor, not (server.image and server.image.id)
    return {
        "uuid": server.id,
        "name": cut(server.name),
        "node": server.compute_host,
        "state": Server.State.PENDING if is_pending else state_of(server),
        "task_state": server.task_state,
        "flavor": flavor.original_name or flavor.name or "",
        "vcpus": flavor.vcpus,
        "memory": flavor.ram,
        "disk": (0 if is_from_volume else flavor.disk) + (flavor.ephemeral or 0) + round_up_to_gigabytes(flavor.swap),
        "flavor_extra_specs": flavor.extra_specs or {},
        "metadata": server.metadata or {},
        "project_id": server.project_id or "",
        "locked": bool(server.is_locked),
        "pinned_az": server.pinned_availability_zone or "",
        "created_at": server.created_at,
        "user_id": server.user_id or "",
        "image": (server.image and server.image.id) or "",
        "launched_at": read_time(server.launched_at),
        "fault": fault_of(server),
        "cloud_updated_at": read_time(server.updated_at),
    }


def fault_of(server: Any) -> dict[str, Any] | None:
    """Return the fault of a server without its details, a traceback that Nova shows only to administrators."""
    fault = server.fault
    return {**{name: fault.get(name) for name in ("code", "message", "created")}, "details": None} if fault else None


def state_of(server: Any) -> str:
    """Return the state for the vm_state of a server, ERROR if it is unknown."""
    return match_choice(Server.State, STATES.get(server.vm_state, server.vm_state), Server.State.ERROR)


def has_no_host(server: Any) -> bool:
    """Return whether a server is in ERROR because Nova found no host, and a replacement can be created.

    A server with volumes cannot be replaced: Nova does not report from which volumes it was to boot.
    """
    if not settings.USE_PENDING_STATE or has_volumes(server):
        return False
    reason = str((server.fault or {}).get("message") or "")
    return server.status == BROKEN and not server.launched_at and reason.startswith(NO_VALID_HOST)


def keeps_owner(server: Any, project: str, user: str, has_trust: Callable[[Any], bool]) -> bool:
    """Return whether a replacement of a server can have the same owner and key pair.

    Args:
        project: the project of the site's login.
        user: the user of the site's login.
        has_trust: returns whether the owner of a server has delegated the creation of servers.
    """
    if server.project_id == project:
        return not server.key_name or server.user_id == user
    return has_trust(server)


def has_volumes(server: Any) -> bool:
    return bool(server.attached_volumes) or not (server.image and server.image.id)


def read_time(text: str | None) -> datetime | None:
    """Return a time of Nova, which is in UTC but may have no offset."""
    return datetime.fromisoformat(text.removesuffix("Z")).replace(tzinfo=UTC) if text else None


def flavor_item(flavor: Any) -> Item:
    return {
        "flavor_id": flavor.id,
        "name": flavor.name,
        "vcpus": flavor.vcpus,
        "memory": flavor.ram,
        "disk": flavor.disk + (flavor.ephemeral or 0) + round_up_to_gigabytes(flavor.swap),
        "extra_specs": flavor.extra_specs or {},
    }


def aggregate_item(aggregate: Any) -> Item:
    return {
        "id": aggregate.id,
        "uuid": aggregate.uuid,
        "name": aggregate.name,
        "metadata": aggregate.metadata or {},
        "compute_nodes": aggregate.hosts or [],
    }


def round_up_to_gigabytes(megabytes: Any) -> int:
    return ceil(int(megabytes or 0) / 1024)


def match_choice(choices: Any, value: Any, default: Any) -> str:
    """Return the value if it is one of the column's choices, else ``default``."""
    return str(value if value in choices.values else default)


def cut(text: Any) -> str:
    return str(text or "")[:255]


def type_item(kind: Any) -> Item:
    return {"uuid": kind.id, "name": kind.name, "extra_specs": kind.extra_specs or {}}


def storage_node_item(service: Any, pools: Iterable[Any], types: Iterable[Any]) -> Item:
    """Return the columns of a backend, with the volume types that one of its pools accepts."""
    own_pools = [pool for pool in pools if pool.name.partition("#")[0] == service.host]
    return {
        "host": service.host,
        "zone": service.availability_zone or DEFAULT_ZONE,
        "status": service.status if service.status in StorageNode.Status.values else StorageNode.Status.DISABLED,
        "state": service.state if service.state in StorageNode.State.values else StorageNode.State.DOWN,
        "volume_types": [kind.name for kind in types if any(takes(pool, kind) for pool in own_pools)],
    }


def takes(pool: Any, kind: Any) -> bool:
    """Return whether a pool accepts volumes of a type, according to the name of the backend."""
    backend = (kind.extra_specs or {}).get("volume_backend_name")
    return backend is None or backend == (pool.capabilities or {}).get("volume_backend_name")


def pool_item(pool: Any, volumes: Iterable[Any]) -> Item:
    """Return the columns of a pool. An infinite or unknown capacity is 0, so that strategies do not use it."""
    reported = pool.capabilities or {}
    total = read_capacity(reported.get("total_capacity_gb"))
    provisioned = read_capacity(reported.get("provisioned_capacity_gb"))
    ratio = read_capacity(reported.get("max_over_subscription_ratio")) or 1.0
    return {
        "name": pool.name,
        "storage_node": pool.name.partition("#")[0],
        "total_volumes": sum(volume.host == pool.name for volume in volumes),
        "total_capacity_gb": int(total),
        "free_capacity_gb": int(read_capacity(reported.get("free_capacity_gb"))),
        "provisioned_capacity_gb": int(provisioned),
        "allocated_capacity_gb": int(read_capacity(reported.get("allocated_capacity_gb"))),
        "max_over_subscription_ratio": ratio,
        "virtual_free": int(total * ratio - provisioned),
    }


def read_capacity(reported: Any) -> float:
    """Return a capacity in GB, 0 if it is not a finite number."""
    try:
        value = float(reported)
    except (TypeError, ValueError):
        return 0
    return value if 0 <= value < float("inf") else 0


def volume_item(volume: Any) -> Item:
    return {
        "uuid": volume.id,
        "name": str(volume.name or "")[:255],
        "size": volume.size,
        "status": volume.status,
        "pool": volume.host,
        "volume_type": volume.volume_type,
        "migration_status": volume.migration_status,
        "multiattach": bool(volume.is_multiattach),
        "bootable": bool(volume.is_bootable),
        "snapshot_id": volume.snapshot_id or "",
        "project_id": volume.project_id or "",
        "metadata": volume.metadata or {},
        "created_at": volume.created_at,
        "cloud_updated_at": read_time(volume.updated_at),
    }


def attachment_items(volume: Any) -> list[Item]:
    return [
        {"uuid": attachment["attachment_id"], "volume": volume.id, "server": attachment["server_id"]}
        for attachment in volume.attachments or []
        if attachment.get("attachment_id") and attachment.get("server_id")
    ]
