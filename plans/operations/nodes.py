"""Operations on nodes: each is a plan of one action."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction

from cluster.drivers.quotas import demand_of_flavors, require_creatable, require_quota
from cluster.models import Cluster, Node
from cluster.operations.profiles import checked_metadata, checked_name
from cluster.policies.sizes import Bounds
from plans import messages
from plans.operations.base import (
    AT_ONCE,
    Operation,
    RequestOptions,
    checked_project,
    find_profile,
    lock_for_operation,
    plan_node_action,
)
from watcher_site.database.text import require_storable
from watcher_site.refusals import Conflict, Invalid

ROLE_LENGTH = 255


@transaction.atomic
def create_node(
    name: str,
    profile: str | None = None,
    *,
    cluster: str | None = None,
    role: str = "",
    metadata: Mapping[str, Any] | None = None,
    project_id: str | None = None,
    options: RequestOptions = AT_ONCE,
) -> Operation:
    """Create a node. The action of the returned operation creates its server.

    Args:
        profile: its UUID or name; by default the profile of the cluster.
        cluster: the UUID or name of the cluster that it joins.
        project_id: its project; by default the project of the cluster.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another operation on the cluster waits or runs, or the cluster has its maximum size; or the cloud
            cannot create servers in the project.
        QuotaExceeded: the quota of the project does not allow another server.
    """
    owner = find_cluster(cluster, project_id).project_id if cluster else project_id or ""
    named = None if profile is None else find_profile(profile, owner)  # Profiles are locked before clusters.
    joined = cluster_to_join(cluster, project_id, options) if cluster else None
    made_from = named or (joined.profile if joined else None)
    if made_from is None:
        raise Invalid(messages.PROFILE_REQUIRED.text)
    node = Node(
        name=checked_name(name),
        profile=made_from,
        role=checked_role(role),
        metadata=checked_metadata(metadata),
        project_id=joined.project_id if joined else checked_project(project_id or ""),
        user_id=options.identity,
        trust=options.trust or (joined.trust if joined else None),
    )
    require_creatable(node.project_id, node.trust)
    require_quota(node.project_id, demand_of_flavors({made_from.spec["flavor"]: 1}))
    node.save()
    return plan_node_action("NODE_CREATE", node, options, cluster_id=joined and str(joined.uuid))


def cluster_to_join(identifier: str, project: str | None, options: RequestOptions) -> Cluster:
    """Lock and return a cluster, of this project if it is given. Raises: `Invalid`, `Conflict` if it is full."""
    current: Cluster = lock_for_operation("NODE_CREATE", find_cluster(identifier, project), options)
    if breach := Bounds(current.min_size, current.max_size).find_breach(current.members().count() + 1):
        raise Conflict(f"cluster: {breach}")
    return current


def find_cluster(identifier: str, project: str | None) -> Cluster:
    """Return the cluster with a UUID or a name, of this project if it is given. Raises: `Invalid`."""
    found = Cluster.objects.present().named(identifier)
    if project is not None:
        found = found.filter(project_id=project)
    if len(few := list(found.select_related("trust")[:2])) != 1:
        raise Invalid((messages.AMBIGUOUS_CLUSTER if few else messages.NO_CLUSTER).fill(name=identifier))
    return few[0]


def delete_node(node: Node, options: RequestOptions = AT_ONCE) -> Operation:
    """Delete a node and its server. Raises: as `plan_node_operation`."""
    return plan_node_operation("NODE_DELETE", node, options)


def check_node(node: Node, options: RequestOptions = AT_ONCE) -> Operation:
    """Check whether the server of a node runs. Raises: as `plan_node_operation`."""
    return plan_node_operation("NODE_CHECK", node, options)


@transaction.atomic
def update_node(node: Node, changes: Mapping[str, Any], options: RequestOptions = AT_ONCE) -> Operation:
    """Change a node; another profile changes or replaces its server.

    Args:
        changes: new values of some of `CHANGEABLE`; the profile as its UUID or name.

    Raises: as `plan_node_operation`.
    """
    if strays := changes.keys() - set(CHANGEABLE):
        raise Invalid(f"{min(strays)}: cannot be changed; {', '.join(CHANGEABLE)} can.")
    inputs = {name: CHANGEABLE[name](value) for name, value in changes.items() if name != "profile"}
    if "profile" in changes:
        inputs["new_profile_id"] = str(find_profile(changes["profile"], node.project_id).uuid)
    return plan_node_operation("NODE_UPDATE", node, options, **inputs)


def recover_node(
    node: Node, *, operation: str | None = None, check: bool | None = None, options: RequestOptions = AT_ONCE
) -> Operation:
    """Recover a node whose server does not run.

    Args:
        operation: REBOOT, REBUILD or RECREATE.
        check: whether to check its server first.

    Raises: as `plan_node_operation`.
    """
    return plan_node_operation("NODE_RECOVER", node, options, operation=operation, check=check)


@transaction.atomic
def plan_node_operation(action_type: str, node: Node, options: RequestOptions, **inputs: Any) -> Operation:
    """Plan an operation on a node.

    Raises:
        Invalid: the message names the field and the rule.
        NotFound: the node was deleted meanwhile.
        Conflict: another operation on it or on its cluster is pending or running.
    """
    return plan_node_action(action_type, lock_for_operation(action_type, node, options), options, **inputs)


def checked_role(role: Any) -> str:
    if not isinstance(role, str):
        raise Invalid("role: must be a text.")
    require_storable("role", role)
    if len(role) > ROLE_LENGTH:
        raise Invalid(messages.ROLE_LENGTH_RULE.fill(number=ROLE_LENGTH))
    return role.strip()


def checked_flag(tainted: Any) -> bool:
    if not isinstance(tainted, bool):
        raise Invalid("tainted: must be true or false.")
    return tainted


CHANGEABLE: dict[str, Callable[..., Any]] = {
    "name": checked_name,
    "profile": find_profile,
    "role": checked_role,
    "metadata": checked_metadata,
    "tainted": checked_flag,
}
