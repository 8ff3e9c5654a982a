"""The topology files that fill the embedded cloud: what may stand in them. `docs/topology.md` describes the format."""

from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from cluster.json_lines import Misfit, check_values
from cluster.models import ComputeNode, Server
from watcher_site.messages import cut

TEXT = {"type": "string", "maxLength": 255}
NAME = {**TEXT, "minLength": 1}
UUID = {"type": "string", "pattern": "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"}
# What a positive integer column holds on every database.
WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
RATIO = {"type": "number", "exclusiveMinimum": 0, "maximum": 1000}
KINDS = {"compute_nodes": "compute node", "servers": "server"}


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
            vcpus=WHOLE,
            vcpu_reserved=WHOLE,
            vcpu_ratio=RATIO,
            memory=WHOLE,
            memory_mb_reserved=WHOLE,
            memory_ratio=RATIO,
            disk=WHOLE,
            disk_gb_reserved=WHOLE,
            disk_ratio=RATIO,
        ),
        "servers": entries(
            ["name", "vcpus", "memory", "disk"],
            uuid=UUID,
            name=NAME,
            node={"anyOf": [NAME, {"type": "null"}]},
            state={"enum": Server.State.values},
            vcpus=WHOLE,
            memory=WHOLE,
            disk=WHOLE,
            metadata={"type": "object"},
            project_id=TEXT,
            locked={"type": "boolean"},
            pinned_az=TEXT,
            flavor_extra_specs={"type": "object"},
        ),
    },
    "additionalProperties": False,
}
PROPERTIES = {name: list(entry["items"]["properties"]) for name, entry in SCHEMA["properties"].items()}


def check_topology(document: Any) -> None:
    """Raise `Misfit` for the first thing in a topology that makes no sense by itself."""
    check_values(document)
    problem = next(iter(Draft202012Validator(SCHEMA).iter_errors(document)), None)
    if problem:
        raise describe(problem)
    for collection, key in (("compute_nodes", "hostname"), ("servers", "name")):
        for field in (key, "uuid"):
            check_unique(document.get(collection, []), collection, field)


def describe(problem: ValidationError) -> Misfit:
    path = list(problem.absolute_path)
    if problem.validator == "additionalProperties":
        kind, known = (KINDS[str(path[0])], PROPERTIES[str(path[0])]) if path else ("topology", list(PROPERTIES))
        stray = next(name for name in cast(dict[str, Any], problem.instance) if name not in known)
        return Misfit([*path, stray], f"is no attribute of a {kind}.")
    if problem.validator == "anyOf":
        problem = (problem.context or [problem])[0]
    return Misfit(path, f"{cut(problem.message)}.")


def check_unique(items: list[dict[str, Any]], collection: str, field: str) -> None:
    seen: dict[str, int] = {}
    for position, item in enumerate(items):
        value = str(item.get(field, "")).casefold() if field == "uuid" else item.get(field, "")
        if value and value in seen:
            raise Misfit([collection, position, field], f"{item[field]} is that of {collection}[{seen[value]}], too.")
        seen[value] = position
