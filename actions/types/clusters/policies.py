"""How actions on clusters and nodes ask the policies of a cluster."""

from collections.abc import Callable, Collection
from typing import Any

from actions.types.base import ActionFailed, ActionType
from cluster.models import Cluster, Node
from cluster.policies.base import PolicyRefused, When, nothing_excluded
from cluster.policies.checking import check_policies

Data = dict[str, Any]


def ask_policies(
    action: ActionType,
    when: When,
    cluster: Cluster,
    data: Data,
    *,
    node: Node | None = None,
    deciding_only: bool = False,
    acting_only: bool = False,
    left_out: Collection[str] = (),
    excluded: Callable[[str], Collection[str]] = nothing_excluded,
) -> Data:
    """Ask those that have not been asked yet, and return the action's data with their decisions, saved after each.

    Args:
        left_out: the UUIDs of nodes that people had left out of the plan, or that rules exclude.
        excluded: as a `PolicyCheck` has it.

    Raises:
        ActionFailed: one of them refuses.
        CloudBusy: one of them can not tell now.
    """
    inputs, context = action.input_parameters, action.context
    try:
        return check_policies(
            *(when, cluster, action.name, inputs, data, context.save_data),
            node=node,
            deciding_only=deciding_only,
            acting_only=acting_only,
            left_out=left_out,
            excluded=excluded,
            checkpoint=context.checkpoint,
        )
    except PolicyRefused as refusal:
        raise ActionFailed(f"Policy check failure: {refusal}") from refusal
