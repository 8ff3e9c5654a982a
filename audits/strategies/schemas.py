"""Parts of parameter schemas that many strategies share."""

from collections.abc import Mapping
from typing import Any

from cluster.datasources.base import AGGREGATES

AGGREGATE = {"type": "string", "enum": [*AGGREGATES]}


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
        "node": {
            "description": "deprecated: use compute_node, which it overrules",
            "type": "string",
            "enum": ["", *AGGREGATES],
            "default": "",
        },
    }
    return {
        "description": "how the samples of a period become one number",
        "type": "object",
        "properties": properties,
        "default": {},
    }


def node_value(values: Mapping[str, Any]) -> Any:
    """Return what a parameter says of compute nodes: its deprecated key ``node``, where it is set, goes first."""
    return values["node"] or values["compute_node"]
