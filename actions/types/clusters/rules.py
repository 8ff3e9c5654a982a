"""Rules for actions on a cluster and its nodes: policies, bounds of the size, and the status."""

from collections.abc import Callable, Collection

from django.db.models import Count, Q

from actions.types import messages
from actions.types.base import ActionFailed, ActionType, Data
from cluster.models import Cluster, Node
from cluster.models.clusters import UNLIMITED
from cluster.policies.base import PolicyRefused, When, nothing_excluded
from cluster.policies.checking import check_policies
from cluster.policies.sizes import Bounds

Status = Cluster.Status


def apply_policies(
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
        left_out: the UUIDs of nodes whose actions were skipped.
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
        raise ActionFailed(messages.POLICY_CHECK_FAILED.fill(reason=refusal)) from refusal


def bounds_of(cluster: Cluster) -> Bounds:
    return Bounds(cluster.min_size, cluster.max_size)


def require_size(bounds: Bounds, size: int) -> None:
    """Raise `ActionFailed` if a cluster with these bounds must not have this number of nodes."""
    if breach := bounds.find_breach(size):
        raise ActionFailed(breach)


def require_left(bounds: Bounds, size: int) -> None:
    """Raise `ActionFailed` if a cluster must not have this few nodes. The maximum is not checked."""
    if breach := Bounds(min_size=bounds.min_size).find_breach(size):
        raise ActionFailed(breach)


def settle_status(cluster: Cluster, action_type: str) -> None:
    """Set a cluster's status to ACTIVE, WARNING or ERROR by the number of its ACTIVE nodes, without saving it."""
    active = cluster.members().aggregate(active=Count("pk", filter=Q(status=Node.Status.ACTIVE)))["active"]
    status, reason = find_status(cluster, active)
    cluster.settle(status, messages.SETTLED.fill(action_type=action_type, reason=reason))


def find_status(cluster: Cluster, active: int) -> tuple[Cluster.Status, str]:
    """Return the status of a cluster with this number of ACTIVE nodes, and the reason."""
    if active < cluster.min_size:
        return Status.ERROR, messages.BELOW_MIN_SIZE.fill(number=active, size=cluster.min_size)
    if active < cluster.desired_capacity:
        return Status.WARNING, messages.BELOW_DESIRED_CAPACITY.fill(number=active, size=cluster.desired_capacity)
    if cluster.max_size != UNLIMITED and active > cluster.max_size:
        return Status.WARNING, messages.ABOVE_MAX_SIZE.fill(number=active, size=cluster.max_size)
    if active > cluster.desired_capacity:
        return Status.ACTIVE, messages.ABOVE_DESIRED_CAPACITY.fill(number=active, size=cluster.desired_capacity)
    return Status.ACTIVE, messages.AS_DESIRED.fill(number=active, size=cluster.desired_capacity)
