"""Operations on the policies of clusters: each is a plan of one action."""

from typing import Any

from django.db import transaction

from cluster.models import Cluster, Policy, PolicyBinding
from cluster.policies.base import PolicyType
from cluster.policies.checking import find_disorder
from plans import messages
from plans.operations.base import AT_ONCE, Operation, RequestOptions, lock_for_operation, plan_cluster_action
from watcher_site import plugins
from watcher_site.refusals import Conflict, Invalid, NotFound


@transaction.atomic
def attach_policy(
    cluster: Cluster,
    policy: str,
    *,
    priority: int | None = None,
    enabled: bool | None = None,
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Attach a policy to a cluster.

    Args:
        policy: its UUID or name.
        priority: policies are applied in ascending order; by default the priority of its type.

    Raises:
        Invalid: the message names the field and the rule.
        NotFound: the cluster was deleted meanwhile.
        Conflict: the cluster has the policy, or another one of a type of which it may have only one; the policy would
            be applied before a policy whose decision it needs; or another operation is pending or running.
    """
    wanted = find_policy(policy)
    current = lock_for_operation("CLUSTER_ATTACH_POLICY", cluster, options)
    held = PolicyBinding.objects.present().filter(cluster=current).select_related("policy")
    if held.filter(policy=wanted).exists():
        raise Conflict(messages.POLICY_ATTACHED.fill(uuid=wanted.uuid, cluster=current.uuid))
    if is_single(wanted) and (other := held.filter(policy__type=wanted.type).first()):
        raise Conflict(messages.POLICY_TYPE_ATTACHED.fill(uuid=other.policy.uuid, type=wanted.type))
    require_order(current, wanted, priority)
    inputs: dict[str, Any] = {"policy_id": str(wanted.uuid), "priority": priority, "enabled": enabled}
    return plan_cluster_action("CLUSTER_ATTACH_POLICY", current, options, **inputs)


@transaction.atomic
def update_policy(
    cluster: Cluster,
    policy: Policy,
    *,
    priority: int | None = None,
    enabled: bool | None = None,
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Change the priority of a cluster's policy, enable it, or disable it. Raises: as `attach_policy`; `NotFound`."""
    if priority is None and enabled is None:
        raise Invalid(messages.NOTHING_OF_POLICY.text)
    current = lock_for_operation("CLUSTER_UPDATE_POLICY", cluster, options)
    require_attached(current, policy)
    if priority is not None:
        require_order(current, policy, priority)
    inputs: dict[str, Any] = {"policy_id": str(policy.uuid), "priority": priority, "enabled": enabled}
    return plan_cluster_action("CLUSTER_UPDATE_POLICY", current, options, **inputs)


@transaction.atomic
def detach_policy(cluster: Cluster, policy: Policy, *, options: RequestOptions = AT_ONCE) -> Operation:
    """Detach a policy from a cluster. Raises: as `attach_policy`; `NotFound` if it is not attached."""
    current = lock_for_operation("CLUSTER_DETACH_POLICY", cluster, options)
    require_attached(current, policy)
    return plan_cluster_action("CLUSTER_DETACH_POLICY", current, options, policy_id=str(policy.uuid))


def require_order(cluster: Cluster, policy: Policy, priority: int | None) -> None:
    """Raise `Conflict` if a policy would be applied before another whose decision it needs."""
    held = PolicyBinding.objects.present().filter(cluster=cluster).select_related("policy").order_by("pk")
    if disorder := find_disorder(policy, priority, held):
        raise Conflict(disorder)


def require_attached(cluster: Cluster, policy: Policy) -> None:
    if not PolicyBinding.objects.present().filter(cluster=cluster, policy=policy).exists():
        raise NotFound(messages.POLICY_NOT_ATTACHED.fill(uuid=policy.uuid, cluster=cluster.uuid))


def find_policy(identifier: str) -> Policy:
    """Return a policy by its UUID or name. Raises: `Invalid` if it does not exist."""
    found = Policy.objects.present().named(identifier).first()
    if found is None:
        raise Invalid(messages.NO_POLICY.fill(name=identifier))
    return found


def is_single(policy: Policy) -> bool:
    """Return whether a cluster can have only one policy of this type."""
    policy_type: type[PolicyType] | None = plugins.load("POLICY_TYPES").get(policy.type)
    return policy_type is None or policy_type.is_single
