"""Operations on clusters: each is a plan of one action."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.template.defaultfilters import pluralize

from cluster.drivers.quotas import require_cluster_quota
from cluster.models import Cluster
from cluster.models.clusters import UNLIMITED
from cluster.operations.profiles import checked_metadata, checked_name
from cluster.policies.sizes import Bounds
from plans.operations.base import (
    AT_ONCE,
    Operation,
    RequestOptions,
    lock_for_operation,
    plan_cluster_action,
    profile_named,
)
from watcher_site.refusals import Conflict, Invalid

LONGEST_TIMEOUT = 2**31 - 1
CHANGEABLE = ("name", "profile", "timeout", "metadata")
# What changes how many nodes there are: a cluster whose creation waits would be created beside it.
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
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Make a cluster, and have its nodes created.

    Args:
        profile: of its nodes: its UUID or its name.
        desired_capacity: how many nodes it gets; left out, as many as it must have.
        timeout: of each of its actions, in seconds; 0 for the site's default.

    Raises:
        Invalid: the message names the field and the rule.
        QuotaExceeded: the site has as many clusters as it may.
    """
    wanted = min_size if desired_capacity is None else desired_capacity
    require_sizes(Bounds(min_size, max_size), wanted)
    cluster = Cluster(
        name=checked_name(name),
        profile=profile_named(profile),
        min_size=min_size,
        max_size=max_size,
        desired_capacity=wanted,
        timeout=checked_cluster_timeout(timeout),
        metadata=checked_metadata(metadata),
    )
    require_cluster_quota()
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
        raise Conflict(
            f"Cluster {cluster.uuid} has {number} node{pluralize(number)}: they are deleted with it if that is forced."
        )
    return plan_cluster_action("CLUSTER_DELETE", current, options)


@transaction.atomic
def update_cluster(cluster: Cluster, changes: Mapping[str, Any], *, options: RequestOptions = AT_ONCE) -> Operation:
    """Change a cluster, and its nodes if it gets another profile.

    Args:
        changes: new values of some of `CHANGEABLE`; the profile is named by its UUID or its name.

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
        checked["new_profile_id"] = str(profile_named(changes["profile"]).uuid)
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
    """Recover the nodes of a cluster that need it.

    Args:
        operation: how: REBOOT, REBUILD or RECREATE; by default as the cluster's policy says.
        check: whether their servers are checked first.
        check_capacity: whether missing nodes are created, too.

    Raises: as `plan_cluster_operation`.
    """
    inputs = {"operation": operation, "check": check, "check_capacity": check_capacity}
    return plan_cluster_operation("CLUSTER_RECOVER", cluster, options, **inputs)


@transaction.atomic
def plan_cluster_operation(action_type: str, cluster: Cluster, options: RequestOptions, **inputs: Any) -> Operation:
    """Plan an operation on a cluster.

    Raises:
        Invalid: the message names the field and the rule.
        NotFound: it was deleted meanwhile.
        Conflict: another operation on it, or on one of its nodes, is pending or running; or it is not allowed.
    """
    current = lock_for_operation(action_type, cluster, options)
    if current.status == Cluster.Status.INIT and action_type in OF_CREATED:
        raise Conflict(f"Cluster {cluster.uuid} has not been created yet: start the plan that creates its nodes.")
    return plan_cluster_action(action_type, current, options, **inputs)


def require_sizes(bounds: Bounds, wanted: int) -> None:
    """Raise `Invalid`, naming the field, for bounds that make no sense, or a size that is outside of them."""
    if flaw := bounds.find_flaw():
        raise Invalid(flaw)
    if breach := bounds.find_breach(wanted):
        raise Invalid(f"desired_capacity: {breach}")


def checked_cluster_timeout(timeout: Any) -> int:
    if isinstance(timeout, bool) or not isinstance(timeout, int) or not 0 <= timeout <= LONGEST_TIMEOUT:
        raise Invalid(f"timeout: must be a whole number of seconds from 0 to {LONGEST_TIMEOUT}.")
    return timeout
