"""Conversion of the payloads of Nova's and Cinder's notifications to values of the site's columns.

The sources of the formats are Nova's `doc/notification_samples` and `nova/notifications/objects`, and
`_usage_from_volume` of Cinder's `cinder/volume/volume_utils.py`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from cluster.drivers.openstack.items import STATES, cut, match_choice, round_up_to_gigabytes
from cluster.models import ComputeNode, Server
from cluster.synchronization.cloud_contents import Item

# The supported major versions of payloads. Within a major version, Nova only adds fields.
VERSIONS = {
    "InstanceActionPayload": {1},
    "InstanceActionRebuildPayload": {1},
    "InstanceActionRescuePayload": {1},
    "InstanceCreatePayload": {1},
    # 2.0 removed a field that is not used here.
    "InstanceUpdatePayload": {1, 2},
    "FlavorPayload": {1},
    "ServiceStatusPayload": {1},
    "AggregatePayload": {1},
}
DELETED = "deleted"
ATTACHED = "attached"
# Nova's default of `service_down_time`, in seconds.
SERVICE_DOWN_TIME = 60

TEXT = {"type": "string"}
OPTIONAL_TEXT = {"type": ["string", "null"]}
UUID_TEXT = {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
OPTIONAL_NUMBER = {**NUMBER, "type": ["integer", "null"]}
OBJECT = {"type": "object"}


def schema(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> Draft202012Validator:
    properties = {**required, **(optional or {})}
    return Draft202012Validator({"type": "object", "required": [*required], "properties": properties})


VERSIONED = schema({"nova_object.name": TEXT, "nova_object.version": TEXT, "nova_object.data": OBJECT})
INSTANCE_KEY = schema({"uuid": UUID_TEXT})
INSTANCE = schema(
    {
        "uuid": UUID_TEXT,
        "display_name": OPTIONAL_TEXT,
        "tenant_id": OPTIONAL_TEXT,
        "user_id": OPTIONAL_TEXT,
        "host": OPTIONAL_TEXT,
        "image_uuid": OPTIONAL_TEXT,
        "state": OPTIONAL_TEXT,
        "task_state": OPTIONAL_TEXT,
        "metadata": OBJECT,
        "flavor": OBJECT,
        "created_at": TEXT,
        "launched_at": OPTIONAL_TEXT,
    },
    {"locked": {"type": "boolean"}, "updated_at": OPTIONAL_TEXT},
)
FLAVOR = schema(
    {"name": TEXT, "vcpus": NUMBER, "memory_mb": NUMBER, "root_gb": NUMBER},
    {"ephemeral_gb": OPTIONAL_NUMBER, "swap": OPTIONAL_NUMBER, "extra_specs": {"type": ["object", "null"]}},
)
SERVICE = schema(
    {
        "host": OPTIONAL_TEXT,
        "binary": OPTIONAL_TEXT,
        "disabled": {"type": "boolean"},
        "disabled_reason": OPTIONAL_TEXT,
        "forced_down": {"type": "boolean"},
        "last_seen_up": OPTIONAL_TEXT,
    }
)
AGGREGATE = schema(
    {
        "id": NUMBER,
        "uuid": UUID_TEXT,
        "name": TEXT,
        "hosts": {"type": ["array", "null"], "items": TEXT},
        "metadata": {"type": ["object", "null"]},
    }
)
VOLUME_KEY = schema({"volume_id": UUID_TEXT})
VOLUME = schema(
    {
        "volume_id": UUID_TEXT,
        "display_name": OPTIONAL_TEXT,
        "size": NUMBER,
        "status": {"type": "string", "maxLength": 20},
        "host": OPTIONAL_TEXT,
        "volume_type": {"anyOf": [UUID_TEXT, {"type": "null"}]},
        "tenant_id": OPTIONAL_TEXT,
        "created_at": TEXT,
    },
    {
        "snapshot_id": OPTIONAL_TEXT,
        "metadata": {"type": ["array", "object", "null"]},
        "volume_attachment": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "instance_uuid"],
                "properties": {"id": UUID_TEXT, "instance_uuid": {"anyOf": [UUID_TEXT, {"type": "null"}]}},
            },
        },
    },
)


class UnusablePayload(Exception):
    """A payload that cannot be read; ``kind`` is the same for all payloads with the same error."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class UnknownVersion(UnusablePayload):
    """A payload of a type or version that this release does not know."""

    def __init__(self, name: str, version: str) -> None:
        super().__init__(f"{name} {version}", f"The payload {name[:100]} {version[:20]} is not known.")


def require(validator: Draft202012Validator, data: Any, kind: str) -> Mapping[str, Any]:
    """Return data after validating it.

    Raises:
        UnusablePayload: the data is invalid. The reason names the field, but not its value, which may be a secret.
    """
    problem = best_match(validator.iter_errors(data))
    if problem:
        path = problem.json_path
        rule = f"a value breaks the rule {problem.validator!r}" if path != "$" else problem.message[:200]
        if not isinstance(data, Mapping):
            rule = "it is not an object"
        raise UnusablePayload(f"{kind} {path} {problem.validator}", f"{kind}: {path}: {rule}.")
    payload: Mapping[str, Any] = data
    return payload


def unwrap(payload: Any) -> Mapping[str, Any]:
    """Return the data of one of Nova's versioned objects.

    Raises:
        UnknownVersion: the object or its major version is not supported.
        UnusablePayload: the payload is not a versioned object.
    """
    wrapped = require(VERSIONED, payload, "versioned payload")
    name, version = wrapped["nova_object.name"], wrapped["nova_object.version"]
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) not in VERSIONS.get(name, ()):
        raise UnknownVersion(name, version)
    data: Mapping[str, Any] = wrapped["nova_object.data"]
    return data


def parse_time(text: Any, kind: str) -> datetime:
    """Return a time; without an offset, it is in UTC.

    Raises:
        UnusablePayload: the text is not a time.
    """
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError) as problem:
        raise UnusablePayload(kind, f"{kind} is not a time.") from problem
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def notification_time(timestamp: Any) -> datetime:
    """Return the time of a notification, at most the current time.

    Otherwise one wrong clock in the cloud would cause the site to ignore later notifications.
    """
    return min(parse_time(timestamp, "timestamp"), timezone.now())


def notified_server(data: Mapping[str, Any]) -> Item:
    """Return the columns of a server that a notification contains."""
    require(INSTANCE, data, "instance")
    flavor = require(FLAVOR, unwrap(data["flavor"]), "flavor")
    state, updated_at = data["state"] or "", data.get("updated_at")
    root = flavor["root_gb"] if data["image_uuid"] else 0
    item: Item = {
        "uuid": data["uuid"],
        "name": cut(data["display_name"]),
        "node": data["host"],
        "state": match_choice(Server.State, STATES.get(state, state), Server.State.ERROR),
        "task_state": data["task_state"],
        "flavor": flavor["name"],
        "vcpus": flavor["vcpus"],
        "memory": flavor["memory_mb"],
        "disk": root + (flavor.get("ephemeral_gb") or 0) + round_up_to_gigabytes(flavor.get("swap")),
        "flavor_extra_specs": flavor.get("extra_specs") or {},
        "metadata": data["metadata"],
        "project_id": data["tenant_id"] or "",
        "user_id": data["user_id"] or "",
        "image": data["image_uuid"] or "",
        "created_at": data["created_at"],
        "launched_at": parse_time(data["launched_at"], "launched_at") if data["launched_at"] else None,
    }
    if updated_at:
        item["cloud_updated_at"] = parse_time(updated_at, "updated_at")
    return item | ({"locked": data["locked"]} if "locked" in data else {})


def service_columns(data: Mapping[str, Any], time: datetime) -> dict[str, Any]:
    """Return the columns of a compute node, without its state if the notification does not imply it.

    Nova sends no notification when a service stops responding.
    """
    columns: dict[str, Any] = {
        "status": ComputeNode.Status.DISABLED if data["disabled"] else ComputeNode.Status.ENABLED,
        "disabled_reason": data["disabled_reason"] and cut(data["disabled_reason"]),
        "forced_down": data["forced_down"],
    }
    if data["forced_down"]:
        return {**columns, "state": ComputeNode.State.DOWN}
    last_report = parse_time(data["last_seen_up"], "last_seen_up") if data["last_seen_up"] else None
    is_up = last_report is not None and (time - last_report).total_seconds() <= SERVICE_DOWN_TIME
    return {**columns, **({"state": ComputeNode.State.UP} if is_up else {})}


def notified_aggregate(data: Mapping[str, Any]) -> Item:
    return {
        "id": data["id"],
        "uuid": data["uuid"],
        "name": data["name"],
        "metadata": data["metadata"] or {},
        "compute_nodes": data["hosts"] or [],
    }


def notified_volume(data: Mapping[str, Any]) -> Item:
    """Return the columns of a volume; ``volume_type`` is the UUID of the type."""
    item: Item = {
        "uuid": data["volume_id"],
        "name": cut(data["display_name"]),
        "size": data["size"],
        "status": data["status"],
        "pool": data["host"],
        "volume_type": data["volume_type"],
        "snapshot_id": data.get("snapshot_id") or "",
        "project_id": data["tenant_id"] or "",
        "created_at": data["created_at"],
    }
    if data.get("glance_metadata"):
        item["bootable"] = True
    return item | ({"metadata": volume_metadata(data["metadata"])} if data.get("metadata") is not None else {})


def volume_metadata(metadata: Any) -> dict[str, Any]:
    """Return metadata as a dictionary; Cinder sends a list of keys and values."""
    if isinstance(metadata, Mapping):
        return dict(metadata)
    pairs = [pair for pair in metadata if isinstance(pair, Mapping) and isinstance(pair.get("key"), str)]
    return {pair["key"]: pair.get("value") for pair in pairs}


def attached_servers(data: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the UUIDs of servers by those of their attachments, or None if the payload has no attachments."""
    if "volume_attachment" not in data:
        return None
    return {
        str(UUID(attachment["id"])): str(UUID(attachment["instance_uuid"]))
        for attachment in data["volume_attachment"]
        if attachment["instance_uuid"] and attachment.get("attach_status", ATTACHED) == ATTACHED
    }
