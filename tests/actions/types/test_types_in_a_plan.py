"""Action types in a plan that an applier executes."""

import pytest

from actions.models import Action
from cluster.models import ComputeNode, Server, Volume
from plans.models import ActionPlan
from tests.builders import make_flavor, make_node, make_plan, make_pool, make_server, make_volume
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def run(*actions: tuple[str, dict[str, object]]) -> dict[str, tuple[str, str]]:
    """Run a plan of these actions, and return the state and the message of each."""
    plan = make_plan()
    Action.objects.bulk_create(
        Action(action_plan=plan, action_type=kind, input_parameters=parameters) for kind, parameters in actions
    )
    ActionPlan.objects.get(pk=plan.pk).launch()
    run_waiting()
    found = Action.objects.filter(action_plan=plan)
    return {action.action_type: (action.state, action.status_message or "") for action in found}


def test_resize_volume_migrate_and_power_off_succeed_in_a_plan() -> None:
    make_flavor("large", vcpus=4, memory=4096, disk=40)
    server, idle = make_server("web-1", make_node("compute1")), make_node("compute2")
    volume = make_volume("data", make_pool("a@lvm#one"), attached_to=[server])
    make_pool("b@lvm#one")
    move = {"resource_id": str(volume.uuid), "migration_type": "migrate", "destination_node": "b@lvm#one"}
    ended = run(
        ("resize", {"resource_id": str(server.uuid), "flavor": "large"}),
        ("volume_migrate", move),
        ("change_node_power_state", {"resource_id": str(idle.uuid), "state": "off"}),
    )
    assert {state for state, _ in ended.values()} == {"SUCCEEDED"}
    assert (Server.objects.get().vcpus, Volume.objects.get().pool.name) == (4, "b@lvm#one")
    assert ComputeNode.objects.get(hostname="compute2").power_state == "off"


def test_action_that_the_cloud_refuses_fails_with_the_reason_of_the_cloud() -> None:
    node = make_node("compute1")
    make_server("web-1", node)
    volume = make_volume("data", make_pool("a@lvm#one"), size=10)
    make_pool("b@lvm#one", total_capacity_gb=5)
    move = {"resource_id": str(volume.uuid), "migration_type": "migrate", "destination_node": "b@lvm#one"}
    ended = run(("volume_migrate", move), ("change_node_power_state", {"resource_id": str(node.uuid), "state": "off"}))
    assert [state for state, _ in ended.values()] == ["FAILED", "FAILED"]
    assert "Pool b@lvm#one has 5 GB free of 10 needed" in ended["volume_migrate"][1]
    assert "Compute node compute1 has 1 running server" in ended["change_node_power_state"][1]
