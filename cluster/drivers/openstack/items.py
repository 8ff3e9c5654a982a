"""Convert openstacksdk's resources of Nova and Cinder to values of our columns."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Any

from django.conf import settings

from cluster.drivers.openstack.operations import NO_VALID_HOST
from cluster.models import ComputeNode, Server, StorageNode
from cluster.models.compute import DEFAULT_ZONE
from cluster.synchronization.cloud_contents import Item

# By resource class: our columns of what there is, what is reserved, and the ratio.
INVENTORIES = {
    "VCPU": ("vcpus", "vcpu_reserved", "vcpu_ratio"),
    "MEMORY_MB": ("memory", "memory_mb_reserved", "memory_ratio"),
    "DISK_GB": ("disk", "disk_gb_reserved", "disk_ratio"),
}
BROKEN = "ERROR"
POWER_STATES = {"power on": str(ComputeNode.PowerState.ON), "power off": str(ComputeNode.PowerState.OFF)}
# Nova's states that we have no word of our own for.
STATES = {"shelved_offloaded": Server.State.SHELVED, "soft-delete": Server.State.STOPPED}


def host_of(hypervisor: Any) -> str:
    """Return what services and servers call a hypervisor: the host of its nova-compute service."""
    return str((hypervisor.service_details or {}).get("host") or hypervisor.name)


def machine_of(hypervisor: Any, machines: Iterable[Any]) -> Any:
    """Return Ironic's node of a hypervisor: that whose ``extra.compute_node_id`` names it, else that of its name."""
    names = {hypervisor.name, (hypervisor.service_details or {}).get("host")}
    machines = list(machines)
    named = (machine for machine in machines if (machine.extra or {}).get("compute_node_id") == hypervisor.id)
    return next(named, None) or next((machine for machine in machines if machine.name in names), None)


def node_item(hypervisor: Any, service: Any, inventories: Mapping[str, Any], power_state: str | None) -> Item:
    """Return the values of a compute node, without columns that the cloud does not report."""
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
        if found := inventories.get(name):
            item |= {total: found.total, reserved: found.reserved, ratio: found.allocation_ratio}
            units[total] = {rule: getattr(found, rule) for rule in ("min_unit", "max_unit", "step_size")}
    if units:
        item["allocation_units"] = units
    return item | ({"power_state": power_state} if power_state else {})


def server_item(server: Any, is_pending: bool) -> Item:
    """Return a server; ``is_pending`` makes its state PENDING instead of ERROR.

    A root disk that is a volume takes no disk of the node.
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
    """Return the fault of a server without its details, a traceback that Nova shows to administrators only."""
    fault = server.fault
    return {**{name: fault.get(name) for name in ("code", "message", "created")}, "details": None} if fault else None


def state_of(server: Any) -> str:
    """Return the vm_state of a server; ERROR for one that our table does not have."""
    return match_choice(Server.State, STATES.get(server.vm_state, server.vm_state), Server.State.ERROR)


def has_no_host(server: Any) -> bool:
    """Return whether Nova left a server in ERROR because it found no host, and another one can be like it.

    Nova does not tell from which volumes a server was to boot.
    """
    if not settings.USE_PENDING_STATE or has_volumes(server):
        return False
    reason = str((server.fault or {}).get("message") or "")
    return server.status == BROKEN and not server.launched_at and reason.startswith(NO_VALID_HOST)


def keeps_owner(server: Any, project: str, user: str, has_trust: Callable[[Any], bool]) -> bool:
    """Return whether a server that is created in the place of another can have its owner, and its key pair.

    Args:
        project: that the site logs in to, as ``user``.
        has_trust: returns whether the owner of a server has delegated its creation.
    """
    if server.project_id == project:
        return not server.key_name or server.user_id == user
    return has_trust(server)


def has_volumes(server: Any) -> bool:
    return bool(server.attached_volumes) or not (server.image and server.image.id)


def read_time(text: str | None) -> datetime | None:
    """Return a time of Nova's, which is UTC without saying so."""
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


def match_choice(choices: Any, word: Any, otherwise: Any) -> str:
    """Return a word that the table's column takes, ``otherwise`` for one that it does not know."""
    return str(word if word in choices.values else otherwise)


def cut(text: Any) -> str:
    return str(text or "")[:255]


def type_item(kind: Any) -> Item:
    return {"uuid": kind.id, "name": kind.name, "extra_specs": kind.extra_specs or {}}


def storage_node_item(service: Any, pools: Iterable[Any], types: Iterable[Any]) -> Item:
    """Return a backend. It serves the types that one of its pools takes."""
    own = [pool for pool in pools if pool.name.partition("#")[0] == service.host]
    return {
        "host": service.host,
        "zone": service.availability_zone or DEFAULT_ZONE,
        "status": service.status if service.status in StorageNode.Status.values else StorageNode.Status.DISABLED,
        "state": service.state if service.state in StorageNode.State.values else StorageNode.State.DOWN,
        "volume_types": [kind.name for kind in types if any(takes(pool, kind) for pool in own)],
    }


def takes(pool: Any, kind: Any) -> bool:
    """Return whether a pool accepts volumes of a type, according to the name of the backend."""
    wanted = (kind.extra_specs or {}).get("volume_backend_name")
    return wanted is None or wanted == (pool.capabilities or {}).get("volume_backend_name")


def pool_item(pool: Any, volumes: Iterable[Any]) -> Item:
    """Return a pool. A capacity that the backend calls infinite or unknown reads 0: nothing is planned into it."""
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
    """Return a capacity in GB; 0 for one that is no number."""
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
        {"uuid": found["attachment_id"], "volume": volume.id, "server": found["server_id"]}
        for found in volume.attachments or []
        if found.get("attachment_id") and found.get("server_id")
    ]
