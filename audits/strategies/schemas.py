"""Parts of parameter schemas that many strategies share."""

from collections.abc import Mapping
from typing import Any

AGGREGATE = {"type": "string", "enum": ["mean", "min", "max", "count"]}


def seconds(description: str, default: float) -> dict[str, Any]:
    return {"description": description, "type": "number", "minimum": 0, "default": default}


def period(default: float) -> dict[str, Any]:
    return seconds("how far back metrics are looked at, in seconds", default)


def granularity(default: float) -> dict[str, Any]:
    return seconds("the distance between samples, in seconds; a hint that not every data source needs", default)


def aggregation_method() -> dict[str, Any]:
    """Return the schema of how the samples of a period become one number, for servers and for compute nodes."""
    properties: Mapping[str, Any] = {
        "instance": {**AGGREGATE, "default": "mean"},
        "compute_node": {**AGGREGATE, "default": "mean"},
        "node": {"description": "deprecated: use compute_node", "type": "string", "default": ""},
    }
    return {
        "description": "how the samples of a period become one number",
        "type": "object",
        "properties": properties,
        "default": {},
    }
