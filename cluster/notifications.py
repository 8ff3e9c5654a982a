"""Notifications about servers without a valid host (docs/compatibility.md, "Notifications about servers").

The signal `server_pending` informs higher apps in the same process.
"""

import re
from collections.abc import Mapping
from typing import Any

from django.dispatch import Signal

from cluster.models import Server
from watcher_site.outbox.kinds import UPDATE, Event, Kind
from watcher_site.outbox.payloads import TIMES, identifier, moment, structure, versioned
from watcher_site.outbox.writing import announce

# Nova's state of a server that was deleted.
DELETED = "deleted"
# Characters that are not allowed in host names.
HOST_NAME = re.compile(r"[^a-z0-9.-]+")
SELECTION = [Event("select_destinations.start"), Event("select_destinations.end")]
SERVER_COLUMNS = (
    *("uuid", "name", "state", "task_state", "flavor", "vcpus", "memory", "disk", "metadata", "image", "project_id"),
    *("user_id", "launched_at", "locked", "pinned_az", "flavor_extra_specs", *TIMES),
)
# The fields of Nova's payloads for which the site has no data.
UNKNOWN_OF_INSTANCE = (
    *("reservation_id", "display_description", "host", "node", "os_type", "architecture", "key_name"),
    *("kernel_id", "ramdisk_id", "power_state", "locked_reason", "auto_disk_config", "request_id"),
    *("action_initiator_user", "action_initiator_project", "audit_period", "old_display_name"),
)
UNKNOWN_OF_REQUEST = (
    *("force_hosts", "force_nodes", "ignore_hosts", "instance_group", "numa_topology", "pci_requests"),
    *("requested_destination", "retry", "security_groups"),
)
server_pending = Signal()
"""Sent after the commit when a server became PENDING, but not if the process dies before.

Receivers must also poll the table.
"""


def wrap(name: str, version: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return versioned(name, version, data, project="nova")


class ServerKind(Kind):
    label, page = "Server", "cluster:server"

    @property
    def model(self) -> type[Server]:
        return Server

    def snapshot(self) -> Mapping[str, Any]:
        return {name: name for name in SERVER_COLUMNS}


class InstanceNotifications(ServerKind):
    name = "instance"
    publisher = "nova-compute"

    def payload(self, notification: Any) -> dict[str, Any]:
        server = notification.snapshot
        is_deleted = bool(server["deleted_at"])
        state, task_state = (DELETED, None) if is_deleted else (server["state"], server["task_state"])
        update = {
            "old_state": notification.old_state,
            "state": state,
            "old_task_state": None,
            "new_task_state": task_state,
        }
        data = {
            **dict.fromkeys(UNKNOWN_OF_INSTANCE),
            **describe_request(server),
            "uuid": identifier(server["uuid"]),
            "tenant_id": server["project_id"],
            "display_name": server["name"],
            "image_uuid": server["image"],
            "metadata": structure(server["metadata"]),
            "state": state,
            "task_state": task_state,
            "host_name": host_name(server),
            "launched_at": moment(server["launched_at"]),
            "terminated_at": moment(server["deleted_at"]),
            **{name: moment(server[name]) for name in TIMES},
            "progress": 0,
            "locked": bool(server["locked"]),
            "ip_addresses": [],
            "block_devices": [],
            "shares": [],
            "tags": [],
            "state_update": wrap("InstanceStateUpdatePayload", "1.0", update),
        }
        return wrap("InstanceUpdatePayload", "2.1", data)


class SchedulerNotifications(ServerKind):
    name = "scheduler"
    event_names = tuple(event.name for event in SELECTION)
    publisher = "nova-scheduler"

    def payload(self, notification: Any) -> dict[str, Any]:
        server = notification.snapshot
        data = {
            **dict.fromkeys(UNKNOWN_OF_REQUEST),
            **describe_request(server),
            "instance_uuid": identifier(server["uuid"]),
            "project_id": server["project_id"],
            "image": wrap("ImageMetaPayload", "1.0", {"id": server["image"]}),
            "num_instances": 1,
            "scheduler_hints": {},
        }
        return wrap("RequestSpecPayload", "1.1", data)


def host_name(server: Mapping[str, Any]) -> str:
    """Return the host name of the guest, which Nova derives from the server's name."""
    return HOST_NAME.sub("-", server["name"].lower()).strip("-.") or f"server-{identifier(server['uuid'])}"


def announce_wait_end(server: Server, before: str) -> None:
    """Add a notification in the open transaction if a server is no longer PENDING."""
    if before == Server.State.PENDING:
        announce(InstanceNotifications.name, [UPDATE], [server.pk], before)


def describe_request(server: Mapping[str, Any]) -> dict[str, Any]:
    flavor = {
        "name": server["flavor"],
        "vcpus": server["vcpus"],
        "memory_mb": server["memory"],
        "root_gb": server["disk"],
        "extra_specs": structure(server["flavor_extra_specs"]),
    }
    return {
        "user_id": server["user_id"],
        "availability_zone": server["pinned_az"] or None,
        "flavor": wrap("FlavorPayload", "1.4", flavor),
    }
