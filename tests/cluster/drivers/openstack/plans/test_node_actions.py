"""Actions on nodes of clusters on an OpenStack cloud: each node gets one server, also if the applier is killed."""

import pytest

from actions.models import Action
from cluster.models import Node
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from plans.operations.nodes import check_node, create_node, delete_node
from tests.builders import make_profile
from tests.cluster.emulator.server import Emulator
from tests.plans.inline import run_waiting
from tests.plans.kills import LifeInStatements, run_until_killed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def profile(emulator: Emulator) -> None:
    synchronize()
    make_profile("web", flavor="m1.small")


def create() -> Node:
    create_node("web", "web")
    run_waiting()
    return Node.objects.latest("pk")


def test_node_is_created_checked_and_deleted(emulator: Emulator) -> None:
    node = create()
    assert (node.status, str(node.physical_id)) == ("ACTIVE", next(iter(emulator.nova.servers)))
    emulator.nova.servers[str(node.physical_id)] |= {"status": "ERROR", "OS-EXT-STS:vm_state": "error"}
    check_node(node)
    run_waiting()
    assert Node.objects.get().status == "ERROR"
    delete_node(node)
    run_waiting()
    assert emulator.nova.servers == {}
    assert Node.objects.get().deleted_at
    assert set(Action.objects.values_list("state", flat=True)) == {"SUCCEEDED"}


def test_node_without_a_valid_host_is_in_error(emulator: Emulator) -> None:
    for service in emulator.nova.services.values():
        service["status"] = "disabled"
    node = create()
    assert (node.status, node.physical_id) == ("ERROR", None)
    assert node.status_reason == "No valid host was found. There are not enough hosts available."
    assert emulator.nova.servers == {}


@pytest.mark.slow
def test_node_gets_one_server_if_the_applier_is_killed_at_any_statement(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements, killed = 0, True
    while killed:
        plan = create_node(f"web {statements}", "web").action_plan
        killed = run_until_killed(monkeypatch, LifeInStatements(statements))
        run_waiting()
        assert ActionPlan.objects.get(uuid=plan).state == "SUCCEEDED"
        statements += 2
        assert Node.objects.filter(status="ACTIVE").count() == len(emulator.nova.servers) == statements // 2
    assert statements > 20
