"""The policies of a cluster, checked without an action."""

from typing import Any

from cluster.models import Cluster
from cluster.policies.base import When
from cluster.policies.checking import check_policies

Data = dict[str, Any]
OPTIONS = frozenset({"node", "left_out", "deciding_only"})


def keep_nothing(data: Data) -> None:
    pass


def check(
    cluster: Cluster, action_type: str, data: Data | None = None, *, when: When = When.BEFORE, **inputs: Any
) -> Data:
    """Return an action's data after the policies of the cluster were checked."""
    options = {name: inputs.pop(name) for name in OPTIONS & inputs.keys()}
    return check_policies(when, cluster, action_type, inputs, data or {}, keep_nothing, **options)
