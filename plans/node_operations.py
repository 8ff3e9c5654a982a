"""What people do to nodes: each operation is a plan of one action."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from actions.models import Action
from actions.proposals import ProposedAction
from cluster.models import Node, Profile
from cluster.profiles import checked_metadata, checked_name, lock
from plans.models import ActionPlan
from plans.proposals import propose
from watcher_site.calling import CallingContext
from watcher_site.refusals import Conflict, Invalid, NotFound
from watcher_site.storable import require_storable

ROLE_LENGTH = 255


@dataclass(frozen=True)
class Operation:
    """What was asked for: the node, the action that it became, and the plan that holds it."""

    node: UUID
    action: UUID
    action_plan: UUID


@transaction.atomic
def create_node(
    name: str,
    profile: str,
    *,
    role: str = "",
    metadata: Mapping[str, Any] | None = None,
    caller: CallingContext | None = None,
    plan_only: bool = False,
) -> Operation:
    """Make a node, and have its server created.

    Args:
        profile: its UUID or its name.
        caller: on whose behalf.
        plan_only: whether the plan stays RECOMMENDED, to look at and to start later.

    Raises:
        Invalid: the message names the field and the rule.
    """
    node = Node(
        name=checked_name(name),
        profile=profile_named(profile),
        role=checked_role(role),
        metadata=checked_metadata(metadata),
    )
    node.save()
    return plan("NODE_CREATE", node, caller, plan_only)


def delete_node(node: Node, caller: CallingContext | None = None, plan_only: bool = False) -> Operation:
    """Have a node and its server deleted. Raises: as `operate`."""
    return operate("NODE_DELETE", node, caller, plan_only)


def check_node(node: Node, caller: CallingContext | None = None, plan_only: bool = False) -> Operation:
    """Have it looked at whether the server of a node runs. Raises: as `operate`."""
    return operate("NODE_CHECK", node, caller, plan_only)


@transaction.atomic
def operate(action_type: str, node: Node, caller: CallingContext | None, plan_only: bool) -> Operation:
    """Have something done to a node that stands.

    Raises:
        NotFound: it was deleted meanwhile.
        Conflict: another operation on it waits or runs. A plan that nobody started is in nobody's way.
    """
    # Of two who ask at once, the second finds what the first asked for.
    standing = Node.objects.present().select_for_update(no_key=True).filter(pk=node.pk).first()
    if standing is None:
        raise NotFound(f"Node {node.uuid} could not be found")
    if not plan_only:
        require_free(action_type, standing)
    return plan(action_type, standing, caller, plan_only)


def require_free(action_type: str, node: Node) -> None:
    under_way = ActionPlan.objects.present().filter(state__in=[ActionPlan.State.PENDING, *ActionPlan.RUNNING])
    unfinished = Action.objects.filter(target=str(node.uuid), action_plan__in=under_way).exclude(
        state__in=Action.FINAL
    )
    if others := [str(uuid) for uuid in unfinished.order_by("pk").values_list("uuid", flat=True)[:3]]:
        raise Conflict(
            f"The {action_type} action for target {node.uuid} conflicts with the following action(s): "
            f"{', '.join(others)}"
        )


def plan(action_type: str, node: Node, caller: CallingContext | None, plan_only: bool) -> Operation:
    action = ProposedAction(action_type, {"resource_id": str(node.uuid), "resource_name": node.name})
    made = propose([action])
    if not plan_only:
        made.launch(caller)
    return Operation(node.uuid, action.uuid, made.uuid)


def profile_named(identifier: str) -> Profile:
    """Return a profile by its UUID or its name, locked: it is not deleted while a node is made from it."""
    found = Profile.objects.present().named(identifier).first()
    try:
        return lock(found) if found else missing(identifier)
    except NotFound:
        return missing(identifier)


def missing(identifier: str) -> Profile:
    raise Invalid(f"profile: there is no profile {identifier}.")


def checked_role(role: str) -> str:
    require_storable("role", role)
    if len(role) > ROLE_LENGTH:
        raise Invalid(f"role: must not be longer than {ROLE_LENGTH} characters.")
    return role.strip()
