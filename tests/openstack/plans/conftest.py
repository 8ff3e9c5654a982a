"""Builders of plans on the nodes of the control plane."""

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import make_plan


def plan_steps(*steps: tuple[str, dict[str, object]]) -> ActionPlan:
    """Create a pending plan of sequential actions."""
    plan = make_plan(state="PENDING")
    last = None
    for action_type, parameters in steps:
        made = Action.objects.create(action_plan=plan, action_type=action_type, input_parameters=parameters)
        made.parents.set([last] if last else [])
        last = made
    return plan


def migration(server: str, migration_type: str = "live") -> tuple[str, dict[str, object]]:
    """Return the step that migrates a server from the first node to the second."""
    nodes = {"source_node": "cmp1", "destination_node": "cmp2"}
    return "migrate", {"resource_id": server, "migration_type": migration_type, **nodes}
