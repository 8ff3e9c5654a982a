"""Parts of the schemas of parameters that several strategies use."""

from collections.abc import Mapping
from typing import Any

from cluster.datasources.base import AGGREGATES

AGGREGATE = {"type": "string", "enum": [*AGGREGATES]}


def seconds(description: str, default: float) -> dict[str, Any]:
    return {"description": description, "type": "number", "minimum": 0, "default": default}


def period(default: float) -> dict[str, Any]:
    return seconds("The length of the period from which samples are used, in seconds.", default)


def granularity(default: float) -> dict[str, Any]:
    return seconds("The interval between samples, in seconds. Not all data sources use it.", default)


def aggregation_method() -> dict[str, Any]:
    """Return the schema of the aggregation of samples, for servers and for compute nodes."""
    properties: Mapping[str, Any] = {
        "instance": {**AGGREGATE, "default": "mean"},
        "compute_node": {**AGGREGATE, "default": "mean"},
        "node": {
            "description": "Deprecated: use compute_node. If set, node overrides it.",
            "type": "string",
            "enum": ["", *AGGREGATES],
            "default": "",
        },
    }
    return {
        "description": "The aggregation of the samples of a period.",
        "type": "object",
        "properties": properties,
        "default": {},
    }


def node_value(values: Mapping[str, Any]) -> Any:
    """Return the value of a parameter for compute nodes, preferably from its deprecated key ``node``."""
    return values["node"] or values["compute_node"]
