"""The policies of a cluster, applied without an action."""

from typing import Any

from cluster.models import Cluster
from cluster.policies.base import When
from cluster.policies.checking import check_policies

Data = dict[str, Any]
OPTIONS = frozenset({"node", "left_out", "deciding_only"})


def keep_nothing(data: Data) -> None:
    pass


def ask(
    cluster: Cluster, action_type: str, data: Data | None = None, *, when: When = When.BEFORE, **inputs: Any
) -> Data:
    """Return what the policies of a cluster make of an action's data."""
    options = {name: inputs.pop(name) for name in OPTIONS & inputs.keys()}
    return check_policies(when, cluster, action_type, inputs, data or {}, keep_nothing, **options)
