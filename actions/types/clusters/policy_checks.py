"""Apply the policies of a cluster to actions on the cluster and on its nodes."""

from collections.abc import Callable, Collection

from actions.types.base import ActionFailed, ActionType, Data
from cluster.models import Cluster, Node
from cluster.policies.base import PolicyRefused, When, nothing_excluded
from cluster.policies.checking import check_policies


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
    """Apply the policies that were not applied yet, and return the action's data, which is saved after each policy.

    Args:
        left_out: the UUIDs of nodes that people excluded from the plan, or that rules exclude.
        excluded: as in `PolicyCheck`.

    Raises:
        ActionFailed: a policy refuses.
        CloudBusy: a policy cannot decide now.
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
