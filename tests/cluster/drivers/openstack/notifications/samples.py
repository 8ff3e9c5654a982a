"""Notifications as Nova and Cinder send them, after Nova's doc/notification_samples."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.utils import timezone

from cluster.drivers.openstack.notifications.events import CINDER, NOVA
from tests.cluster.emulator.nova import make_uuid

SERVER, VOLUME = make_uuid("web"), make_uuid("data")
CREATED = "2026-03-01T10:00:00Z"


def versioned(name: str, version: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "nova_object.namespace": "nova",
        "nova_object.name": name,
        "nova_object.version": version,
        "nova_object.data": dict(data),
    }


def flavor(**columns: Any) -> dict[str, Any]:
    data = {
        "flavorid": "a22d5517-147c-4147-a0d1-e698df5cd4e3",
        "name": "m1.small",
        "root_gb": 20,
        "vcpus": 2,
        "ephemeral_gb": 0,
        "memory_mb": 2048,
        "disabled": False,
        "rxtx_factor": 1.0,
        "extra_specs": {"hw:watchdog_action": "disabled"},
        "projects": None,
        "swap": 0,
        "is_public": True,
        "vcpu_weight": 0,
        "description": None,
    }
    return versioned("FlavorPayload", "1.4", {**data, **columns})


def instance(payload: str = "InstanceActionPayload", version: str = "1.9", **columns: Any) -> dict[str, Any]:
    data = {
        "architecture": "x86_64",
        "availability_zone": "nova",
        "block_devices": [],
        "created_at": CREATED,
        "deleted_at": None,
        "display_name": "web",
        "display_description": "web",
        "fault": None,
        "host": "compute1",
        "host_name": "web",
        "ip_addresses": [],
        "kernel_id": "",
        "key_name": "my-key",
        "launched_at": "2026-03-01T10:00:30Z",
        "image_uuid": "155d900f-4e14-4e4c-a73d-069cbf4541e6",
        "metadata": {},
        "locked": False,
        "node": "compute1.example.org",
        "os_type": None,
        "progress": 0,
        "ramdisk_id": "",
        "reservation_id": "r-npxv0e40",
        "state": "active",
        "task_state": None,
        "power_state": "running",
        "tenant_id": "a project",
        "terminated_at": None,
        "auto_disk_config": "MANUAL",
        "flavor": flavor(),
        "updated_at": None,
        "user_id": "fake",
        "uuid": SERVER,
        "request_id": "req-5b6c791d-5709-4f36-8fbe-c3e02869e35d",
        "action_initiator_user": "fake",
        "action_initiator_project": "a project",
        "locked_reason": None,
        "shares": [],
    }
    return versioned(payload, version, {**data, **columns})


def service(host: str = "compute1", **columns: Any) -> dict[str, Any]:
    data = {
        "host": host,
        "disabled": False,
        "binary": "nova-compute",
        "topic": "compute",
        "disabled_reason": None,
        "forced_down": False,
        "version": 23,
        "availability_zone": None,
        "uuid": "fa69c544-906b-4a6a-a9c6-c1f7a8078c73",
        "last_seen_up": None,
        "report_count": 0,
    }
    return versioned("ServiceStatusPayload", "1.1", {**data, **columns})


def aggregate(*hosts: str, number: int = 1, name: str = "racks", **metadata: str) -> dict[str, Any]:
    data = {"id": number, "uuid": make_uuid(name), "name": name, "hosts": list(hosts), "metadata": metadata}
    return versioned("AggregatePayload", "1.1", data)


def volume(*servers: str, **columns: Any) -> dict[str, Any]:
    """Return the unversioned payload of Cinder's `_usage_from_volume`, attached to these servers."""
    return {
        "tenant_id": "a project",
        "host": "block@lvm#gold",
        "user_id": "fake",
        "availability_zone": "nova",
        "volume_id": VOLUME,
        "volume_type": None,
        "display_name": "data",
        "launched_at": "2026-03-01T10:00:05+00:00",
        "created_at": "2026-03-01T10:00:00+00:00",
        "status": "in-use" if servers else "available",
        "snapshot_id": None,
        "size": 10,
        "replication_status": None,
        "replication_extended_status": None,
        "replication_driver_data": None,
        "metadata": [{"key": "kind", "value": "database"}],
        "volume_attachment": [
            {
                "id": make_uuid(f"{one} attached"),
                "instance_uuid": one,
                "attach_status": "attached",
                "volume_id": VOLUME,
            }
            for one in servers
        ],
        **columns,
    }


def ago(seconds: float) -> datetime:
    return timezone.now() - timedelta(seconds=seconds)


def stamp(time: datetime) -> str:
    """Return a time as oslo.messaging's notifiers write it."""
    return str(time.replace(tzinfo=None))


def handle(event: str, payload: Any, time: datetime | None = None) -> bool:
    """Handle a notification, and return whether it changed anything."""
    return {**NOVA, **CINDER}[event](payload, time or timezone.now())


def message(event: str, payload: Any, time: datetime | None = None, priority: str = "INFO") -> dict[str, Any]:
    return {
        "message_id": str(uuid4()),
        "publisher_id": "nova-compute:compute1",
        "event_type": event,
        "priority": priority,
        "payload": payload,
        "timestamp": stamp(time or timezone.now()),
    }
