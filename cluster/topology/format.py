"""The format of topology files, which is described in `docs/topology.md`."""

from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from cluster.json_lines import InvalidValue, check_values
from cluster.models import ComputeNode, Server, StorageNode, Volume
from cluster.models.balancing import MAX_PORT, MAX_WEIGHT
from watcher_site.messages import cut

TEXT = {"type": "string", "maxLength": 255}
NAME = {**TEXT, "minLength": 1}
UUID = {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}
# The range of a positive integer column on every database.
WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
RATIO = {"type": "number", "exclusiveMinimum": 0, "maximum": 1000}
SIZE = {"vcpus": WHOLE, "memory": WHOLE, "disk": WHOLE}
OBJECT = {"type": "object"}
FLAG = {"type": "boolean"}
NAMES = {"type": "array", "items": NAME, "uniqueItems": True}
OPTIONAL_NAME = {"anyOf": [NAME, {"type": "null"}]}
POOL_NAME = {**NAME, "pattern": "^[^#@]+@[^#@]+#[^#]+$"}
STORAGE_HOST = {**NAME, "pattern": "^[^#@]+@[^#@]+$"}
KINDS = {
    "compute_nodes": "compute node",
    "host_aggregates": "host aggregate",
    "flavors": "flavor",
    "servers": "server",
    "volume_types": "volume type",
    "storage_nodes": "storage node",
    "pools": "pool",
    "volumes": "volume",
    "balancing_pools": "load-balancer pool",
    "members": "member of a pool",
}
# The attributes that must be unique in a list.
UNIQUE = {
    "compute_nodes": ("hostname", "uuid"),
    "host_aggregates": ("id", "name", "uuid"),
    "flavors": ("name", "id", "uuid"),
    "servers": ("name", "uuid"),
    "volume_types": ("name", "uuid"),
    "storage_nodes": ("host", "uuid"),
    "pools": ("name", "uuid"),
    "volumes": ("name", "uuid"),
    "balancing_pools": ("name", "uuid"),
}


def entries(required: list[str], **properties: Any) -> dict[str, Any]:
    item = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "array", "items": item}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "compute_nodes": entries(
            ["hostname", "vcpus", "memory", "disk"],
            uuid=UUID,
            hostname=NAME,
            status={"enum": ComputeNode.Status.values},
            disabled_reason={"anyOf": [TEXT, {"type": "null"}]},
            state={"enum": ComputeNode.State.values},
            power_state={"enum": ComputeNode.PowerState.values},
            zone=NAME,
            **SIZE,
            vcpu_reserved=WHOLE,
            vcpu_ratio=RATIO,
            memory_mb_reserved=WHOLE,
            memory_ratio=RATIO,
            disk_gb_reserved=WHOLE,
            disk_ratio=RATIO,
        ),
        "host_aggregates": entries(
            ["id", "name"], uuid=UUID, id=WHOLE, name=NAME, metadata=OBJECT, compute_nodes=NAMES
        ),
        "flavors": entries(
            ["name", "vcpus", "memory", "disk"], uuid=UUID, id=NAME, name=NAME, **SIZE, extra_specs=OBJECT
        ),
        "servers": entries(
            ["name", "vcpus", "memory", "disk"],
            uuid=UUID,
            name=NAME,
            node=OPTIONAL_NAME,
            state={"enum": Server.State.values},
            **SIZE,
            flavor=TEXT,
            metadata=OBJECT,
            project_id=TEXT,
            locked=FLAG,
            pinned_az=TEXT,
            flavor_extra_specs=OBJECT,
            created_at=NAME,
        ),
        "volume_types": entries(["name"], uuid=UUID, name=NAME, extra_specs=OBJECT),
        "storage_nodes": entries(
            ["host"],
            uuid=UUID,
            host=STORAGE_HOST,
            zone=NAME,
            status={"enum": StorageNode.Status.values},
            state={"enum": StorageNode.State.values},
            volume_types=NAMES,
        ),
        "pools": entries(
            ["name", "total_capacity_gb"],
            uuid=UUID,
            name=POOL_NAME,
            total_capacity_gb=WHOLE,
            max_over_subscription_ratio=RATIO,
        ),
        "volumes": entries(
            ["name", "size"],
            uuid=UUID,
            name=NAME,
            size=WHOLE,
            pool=OPTIONAL_NAME,
            status={"enum": Volume.Status.values},
            volume_type=OPTIONAL_NAME,
            attachments=NAMES,
            multiattach=FLAG,
            bootable=FLAG,
            snapshot_id=TEXT,
            has_snapshots=FLAG,
            project_id=TEXT,
            metadata=OBJECT,
            created_at=NAME,
        ),
        "balancing_pools": entries(
            ["name"],
            uuid=UUID,
            name=NAME,
            members=entries(
                ["server", "port"],
                server=NAME,
                port={"type": "integer", "minimum": 1, "maximum": MAX_PORT},
                weight={"type": "integer", "minimum": 0, "maximum": MAX_WEIGHT},
                connections=WHOLE,
            ),
        ),
    },
    "additionalProperties": False,
}


def check_topology(document: Any) -> None:
    """Raise `InvalidValue` for the first invalid value of a topology."""
    check_values(document)
    problem = next(iter(Draft202012Validator(SCHEMA).iter_errors(document)), None)
    if problem:
        raise make_invalid_value(problem)
    for collection, attributes in UNIQUE.items():
        for field in attributes:
            check_unique(document.get(collection, []), collection, field)


def make_invalid_value(problem: ValidationError) -> InvalidValue:
    path = list(problem.absolute_path)
    if problem.validator == "additionalProperties":
        kind = next((KINDS[part] for part in reversed(path) if isinstance(part, str)), "topology")
        properties = cast(dict[str, Any], problem.schema)["properties"]
        stray = next(name for name in cast(dict[str, Any], problem.instance) if name not in properties)
        return InvalidValue([*path, stray], f"is not an attribute of a {kind}.")
    if problem.validator == "anyOf":
        problem = (problem.context or [problem])[0]
    return InvalidValue(path, f"{cut(problem.message)}.")


def check_unique(items: list[dict[str, Any]], collection: str, field: str) -> None:
    positions: dict[str, int] = {}
    for position, item in enumerate(items):
        value = str(item.get(field, "")).casefold() if field == "uuid" else item.get(field, "")
        if value != "" and value in positions:
            raise InvalidValue(
                [collection, position, field], f"{item[field]} is that of {collection}[{positions[value]}], too."
            )
        positions[value] = position
