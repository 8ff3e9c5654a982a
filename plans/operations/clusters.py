"""Operations on clusters, on their state and on their size: each is a plan of one action."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any
from uuid import UUID

from django.db import transaction
from django.template.defaultfilters import pluralize

from cluster.drivers.quotas import demand_of_flavors, require_cluster_quota, require_creatable, require_quota
from cluster.models import Cluster, Node
from cluster.models.clusters import UNLIMITED
from cluster.operations.profiles import checked_metadata, checked_name
from cluster.policies.sizes import MAX_NODES, AdjustmentType, Bounds, compute_change, find_flaw
from plans import messages
from plans.operations.base import (
    AT_ONCE,
    Operation,
    RequestOptions,
    checked_project,
    find_profile,
    lock_for_operation,
    plan_cluster_action,
)
from watcher_site.refusals import Conflict, Invalid

MAX_TIMEOUT = 2**31 - 1
CHANGEABLE = ("name", "profile", "timeout", "metadata")
# The operations that change the number of nodes. They are refused until the creation of the cluster has begun.
OF_CREATED = frozenset(
    {"CLUSTER_SCALE_OUT", "CLUSTER_SCALE_IN", "CLUSTER_RESIZE", "CLUSTER_ADD_NODES", "CLUSTER_DEL_NODES"}
)


@transaction.atomic
def create_cluster(
    name: str,
    profile: str,
    *,
    min_size: int = 0,
    max_size: int = UNLIMITED,
    desired_capacity: int | None = None,
    timeout: int = 0,
    metadata: Mapping[str, Any] | None = None,
    project_id: str = "",
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Create a cluster. The action of the returned operation creates its nodes.

    Args:
        profile: the UUID or name of the profile of its nodes.
        desired_capacity: the number of nodes, by default ``min_size``.
        timeout: the timeout of each of its actions, in seconds; 0 for the default of the site.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: the cloud cannot create servers in the project.
        QuotaExceeded: the quota of the project does not allow the cluster or its servers.
    """
    wanted = min_size if desired_capacity is None else desired_capacity
    require_sizes(Bounds(min_size, max_size), wanted)
    cluster = Cluster(
        name=checked_name(name),
        profile=find_profile(profile, project_id),
        min_size=min_size,
        max_size=max_size,
        desired_capacity=wanted,
        timeout=checked_cluster_timeout(timeout),
        metadata=checked_metadata(metadata),
        project_id=checked_project(project_id),
        user_id=options.identity,
        trust=options.trust,
    )
    require_creatable(cluster.project_id, cluster.trust)
    require_cluster_quota(cluster.project_id)
    require_quota(cluster.project_id, demand_of_flavors({cluster.profile.spec["flavor"]: wanted}))
    cluster.save()
    return plan_cluster_action("CLUSTER_CREATE", cluster, options)


@transaction.atomic
def delete_cluster(cluster: Cluster, *, force: bool = False, options: RequestOptions = AT_ONCE) -> Operation:
    """Delete a cluster.

    Args:
        force: delete its nodes as well, and cancel other operations on it. Without this, a cluster with nodes is not
            deleted.

    Raises: as `plan_cluster_operation`.
    """
    current = lock_for_operation("CLUSTER_DELETE", cluster, options, cancels_others=force)
    if (number := current.members().count()) and not force:
        raise Conflict(messages.CLUSTER_HAS_NODES.fill(uuid=cluster.uuid, nodes=f"{number} node{pluralize(number)}"))
    return plan_cluster_action("CLUSTER_DELETE", current, options)


@transaction.atomic
def update_cluster(cluster: Cluster, changes: Mapping[str, Any], *, options: RequestOptions = AT_ONCE) -> Operation:
    """Change a cluster, and its nodes if it gets another profile.

    Args:
        changes: new values of some of `CHANGEABLE`; the profile as its UUID or name.

    Raises: as `plan_cluster_operation`.
    """
    if strays := changes.keys() - set(CHANGEABLE):
        raise Invalid(f"{min(strays)}: cannot be changed so; {', '.join(CHANGEABLE)} can.")
    checked: dict[str, Any] = {}
    if "name" in changes:
        checked["name"] = checked_name(changes["name"])
    if "metadata" in changes:
        checked["metadata"] = checked_metadata(changes["metadata"])
    if "timeout" in changes:
        checked["timeout"] = checked_cluster_timeout(changes["timeout"])
    if "profile" in changes:
        checked["new_profile_id"] = str(find_profile(changes["profile"], cluster.project_id).uuid)
    return plan_cluster_operation("CLUSTER_UPDATE", cluster, options, **checked)


def check_cluster(cluster: Cluster, *, options: RequestOptions = AT_ONCE) -> Operation:
    """Check whether the servers of the cluster's nodes run. Raises: as `plan_cluster_operation`."""
    return plan_cluster_operation("CLUSTER_CHECK", cluster, options)


def recover_cluster(
    cluster: Cluster,
    *,
    operation: str | None = None,
    check: bool | None = None,
    check_capacity: bool | None = None,
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Recover the unhealthy nodes of a cluster.

    Args:
        operation: REBOOT, REBUILD or RECREATE; by default the operation of the health policy of the cluster.
        check: whether to check the servers first.
        check_capacity: whether to create missing nodes, too.

    Raises: as `plan_cluster_operation`.
    """
    inputs = {"operation": operation, "check": check, "check_capacity": check_capacity}
    return plan_cluster_operation("CLUSTER_RECOVER", cluster, options, **inputs)


def scale_out(cluster: Cluster, *, count: int | None = None, options: RequestOptions = AT_ONCE) -> Operation:
    """Add nodes to a cluster: ``count``, by default the number of its scaling policy, or one.

    Raises: as `plan_cluster_operation`.
    """
    return plan_cluster_operation("CLUSTER_SCALE_OUT", cluster, options, count=count)


def scale_in(cluster: Cluster, *, count: int | None = None, options: RequestOptions = AT_ONCE) -> Operation:
    """Remove nodes from a cluster: ``count``, by default the number of its scaling policy, or one.

    Raises: as `plan_cluster_operation`.
    """
    return plan_cluster_operation("CLUSTER_SCALE_IN", cluster, options, count=count)


@transaction.atomic
def resize(
    cluster: Cluster,
    *,
    adjustment_type: str | None = None,
    number: float | None = None,
    min_size: int | None = None,
    max_size: int | None = None,
    min_step: int | None = None,
    strict: bool | None = None,
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Adjust the size of a cluster, or its limits, or both.

    Args:
        adjustment_type: one of `cluster.policies.sizes.AdjustmentType`, the meaning of ``number``.
        min_step: the minimum number of nodes for a percentage.
        strict: whether a size outside of the limits is refused; otherwise the nearest limit applies.

    Raises: as `plan_cluster_operation`.
    """
    current = lock_for_operation("CLUSTER_RESIZE", cluster, options)
    check_adjustment(adjustment_type, number, min_step, any(size is not None for size in (min_size, max_size)))
    bounds = Bounds(
        current.min_size if min_size is None else min_size, current.max_size if max_size is None else max_size
    )
    if flaw := bounds.find_flaw():
        raise Invalid(flaw)
    size = current.members().count()
    wanted = size + compute_change(
        size, adjustment_type or AdjustmentType.CHANGE_IN_CAPACITY, number or 0, min_step or 1
    )
    if strict is not False:
        require_size(bounds, wanted, "number" if number is not None else None)
    inputs = {"min_size": min_size, "max_size": max_size, "min_step": min_step, "strict": strict}
    return plan_cluster_action(
        "CLUSTER_RESIZE", current, options, adjustment_type=adjustment_type, number=number, **inputs
    )


@transaction.atomic
def add_nodes(cluster: Cluster, nodes: Sequence[str], *, options: RequestOptions = AT_ONCE) -> Operation:
    """Add nodes that are in no cluster to a cluster.

    Args:
        nodes: the UUIDs of the nodes.

    Raises: as `plan_cluster_operation`.
    """
    found = find_nodes(nodes)
    current = lock_for_operation("CLUSTER_ADD_NODES", cluster, options, beside=found)
    for node in Node.objects.filter(pk__in=[one.pk for one in found]).select_related("cluster").order_by("pk"):
        if node.cluster is not None:
            raise Conflict(messages.NODE_OF_CLUSTER.fill(uuid=node.uuid, cluster=node.cluster.uuid))
        if node.project_id != current.project_id:
            raise Conflict(messages.NODE_OF_OTHER_PROJECT.fill(uuid=node.uuid, cluster=current.uuid))
        if node.status != Node.Status.ACTIVE:
            raise Conflict(messages.NODE_NOT_ACTIVE.fill(uuid=node.uuid, status=node.status))
    return plan_cluster_action("CLUSTER_ADD_NODES", current, options, nodes=[str(one.uuid) for one in found])


@transaction.atomic
def del_nodes(
    cluster: Cluster,
    nodes: Sequence[str],
    *,
    destroy_after_deletion: bool | None = None,
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Remove members from a cluster.

    Args:
        nodes: the UUIDs of the nodes.
        destroy_after_deletion: whether to delete the nodes with their servers; otherwise they stay without a cluster.

    Raises: as `plan_cluster_operation`.
    """
    found = find_nodes(nodes)
    current = lock_for_operation("CLUSTER_DEL_NODES", cluster, options)
    for node in found:
        if node.cluster_id != current.pk:
            raise Conflict(messages.NODE_NOT_OF_CLUSTER.fill(uuid=node.uuid, cluster=current.uuid))
    inputs = {"nodes": [str(one.uuid) for one in found], "destroy_after_deletion": destroy_after_deletion}
    return plan_cluster_action("CLUSTER_DEL_NODES", current, options, **inputs)


@transaction.atomic
def plan_cluster_operation(action_type: str, cluster: Cluster, options: RequestOptions, **inputs: Any) -> Operation:
    """Plan an operation on a cluster.

    Raises:
        Invalid: the message names the field and the rule.
        NotFound: the cluster was deleted meanwhile.
        Conflict: another operation on it, or on one of its nodes, is pending or running; or it is not allowed.
    """
    current = lock_for_operation(action_type, cluster, options)
    if current.status == Cluster.Status.INIT and action_type in OF_CREATED:
        raise Conflict(messages.CLUSTER_NOT_CREATED.fill(uuid=cluster.uuid))
    return plan_cluster_action(action_type, current, options, **inputs)


def require_sizes(bounds: Bounds, wanted: int) -> None:
    """Raise `Invalid`, with the field, for invalid limits or a size outside of them."""
    if flaw := bounds.find_flaw():
        raise Invalid(flaw)
    if breach := bounds.find_breach(wanted):
        raise Invalid(f"desired_capacity: {breach}")


def checked_cluster_timeout(timeout: Any) -> int:
    if isinstance(timeout, bool) or not isinstance(timeout, int) or not 0 <= timeout <= MAX_TIMEOUT:
        raise Invalid(messages.CLUSTER_TIMEOUT.fill(most=MAX_TIMEOUT))
    return timeout


def check_adjustment(adjustment_type: str | None, number: float | None, min_step: int | None, bounded: bool) -> None:
    """Raise `Invalid`, with the field and the rule, for an invalid adjustment."""
    if number is not None and not isfinite(number):
        raise Invalid(messages.INFINITE_NUMBER.text)
    if flaw := find_flaw(adjustment_type, number, is_bounded=bounded):
        raise Invalid(flaw)
    if min_step is not None and adjustment_type != AdjustmentType.CHANGE_IN_PERCENTAGE:
        raise Invalid(messages.MIN_STEP.fill(type=AdjustmentType.CHANGE_IN_PERCENTAGE))


def require_size(bounds: Bounds, wanted: int, field: str | None) -> None:
    """Raise `Invalid`, with the field or the exceeded limit, for a size outside of the limits."""
    if wanted < 0:
        raise Invalid(messages.NEGATIVE_CAPACITY.fill(field=field, size=wanted))
    if breach := bounds.find_breach(wanted):
        bound = "min_size" if wanted < bounds.min_size else "max_size"
        raise Invalid(f"{field or bound}: {breach}")


def find_nodes(uuids: Sequence[Any]) -> list[Node]:
    """Return nodes by their UUIDs, in this order.

    Raises:
        Invalid: the list is empty or too long, or contains an invalid UUID, duplicates or an unknown node.
    """
    if not uuids:
        raise Invalid(messages.NO_NODES.text)
    named = [parse_uuid_of_node(uuid) for uuid in uuids]
    if len(named) > MAX_NODES:
        raise Invalid(messages.TOO_MANY_NODES.fill(number=MAX_NODES))
    for uuid, times in Counter(named).most_common(1):
        if times > 1:
            raise Invalid(messages.NODE_REPEATED.fill(uuid=uuid, number=times))
    found = {node.uuid: node for node in Node.objects.present().filter(uuid__in=named)}
    if unknown := [uuid for uuid in named if uuid not in found]:
        raise Invalid(messages.NO_NODE.fill(uuid=unknown[0]))
    return [found[uuid] for uuid in named]


def parse_uuid_of_node(uuid: Any) -> UUID:
    try:
        return UUID(str(uuid))
    except ValueError:
        raise Invalid(messages.NODE_UUID.fill(text=uuid)) from None
