"""Operations on nodes: each is a plan of one action."""

from collections.abc import Callable, Mapping
from typing import Any

from django.db import transaction

from cluster.models import Cluster, Node
from cluster.operations.profiles import checked_metadata, checked_name
from cluster.policies.sizes import Bounds
from plans.operations.base import AT_ONCE, Asked, Operation, hold, plan_node_action, profile_named
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
    asked: Asked = AT_ONCE,
) -> Operation:
    """Make a node, and have its server created.

    Args:
        profile: its UUID or its name; left out, that of the cluster.
        cluster: the UUID or the name of the one that it joins.

    Raises:
        Invalid: the message names the field and the rule.
        Conflict: another operation on the cluster waits or runs, or it has as many nodes as it may.
    """
    named = None if profile is None else profile_named(profile)  # Profiles are locked before clusters.
    joined = cluster_to_join(cluster, asked) if cluster else None
    made_from = named or (joined.profile if joined else None)
    if made_from is None:
        raise Invalid("profile: must be there, unless cluster is.")
    node = Node(
        name=checked_name(name),
        profile=made_from,
        role=checked_role(role),
        metadata=checked_metadata(metadata),
    )
    node.save()
    return plan_node_action("NODE_CREATE", node, asked, cluster_id=joined and str(joined.uuid))


def cluster_to_join(identifier: str, asked: Asked) -> Cluster:
    """Return a cluster, locked, that may have one more node."""
    found = Cluster.objects.present().named(identifier)
    if len(few := list(found[:2])) != 1:
        raise Invalid(f"cluster: there is {'no' if not few else 'more than one'} cluster {identifier}.")
    standing: Cluster = hold("NODE_CREATE", few[0], asked)
    if breach := Bounds(standing.min_size, standing.max_size).find_breach(standing.members().count() + 1):
        raise Conflict(f"cluster: {breach}")
    return standing


def delete_node(node: Node, asked: Asked = AT_ONCE) -> Operation:
    """Delete a node and its server. Raises: as `operate`."""
    return operate("NODE_DELETE", node, asked)


def check_node(node: Node, asked: Asked = AT_ONCE) -> Operation:
    """Check whether the server of a node runs. Raises: as `operate`."""
    return operate("NODE_CHECK", node, asked)


@transaction.atomic
def update_node(node: Node, changes: Mapping[str, Any], asked: Asked = AT_ONCE) -> Operation:
    """Change a node; another profile changes or replaces its server.

    Args:
        changes: new values of some of `CHANGEABLE`; the profile is named by its UUID or its name.

    Raises: as `operate`.
    """
    if strays := changes.keys() - set(CHANGEABLE):
        raise Invalid(f"{min(strays)}: cannot be changed; {', '.join(CHANGEABLE)} can.")
    inputs = {name: CHANGEABLE[name](value) for name, value in changes.items()}
    if profile := inputs.pop("profile", None):
        inputs["new_profile_id"] = str(profile.uuid)
    return operate("NODE_UPDATE", node, asked, **inputs)


def recover_node(
    node: Node, *, operation: str | None = None, check: bool | None = None, asked: Asked = AT_ONCE
) -> Operation:
    """Recover a node whose server does not run.

    Args:
        operation: how: REBOOT, REBUILD or RECREATE.
        check: whether its server is checked first.

    Raises: as `operate`.
    """
    return operate("NODE_RECOVER", node, asked, operation=operation, check=check)


@transaction.atomic
def operate(action_type: str, node: Node, asked: Asked, **inputs: Any) -> Operation:
    """Plan an operation on a node.

    Raises:
        Invalid: the message names the field and the rule.
        NotFound: it was deleted meanwhile.
        Conflict: another operation on it or on its cluster is pending or running.
    """
    return plan_node_action(action_type, hold(action_type, node, asked), asked, **inputs)


def checked_role(role: Any) -> str:
    if not isinstance(role, str):
        raise Invalid("role: must be a text.")
    require_storable("role", role)
    if len(role) > ROLE_LENGTH:
        raise Invalid(f"role: must not be longer than {ROLE_LENGTH} characters.")
    return role.strip()


def checked_flag(tainted: Any) -> bool:
    if not isinstance(tainted, bool):
        raise Invalid("tainted: must be true or false.")
    return tainted


CHANGEABLE: dict[str, Callable[[Any], Any]] = {
    "name": checked_name,
    "profile": profile_named,
    "role": checked_role,
    "metadata": checked_metadata,
    "tainted": checked_flag,
}
