"""An applier killed at each database write of an operation on a node: exactly one known server is left."""

from collections.abc import Callable

import pytest

from cluster.models import Node, Server
from plans.models import ActionPlan
from plans.operations.nodes import create_node, delete_node
from tests.builders import make_flavor, make_node, make_profile
from tests.plans.inline import run_waiting
from tests.plans.kills import kill_at_every_change

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# With fewer kills, the appliers were not killed during the operation.
AT_LEAST = 10


@pytest.fixture(autouse=True)
def capacity() -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")
    make_profile("web")


def creation() -> ActionPlan:
    return ActionPlan.objects.get(uuid=create_node("web", "web").action_plan)


def deletion() -> ActionPlan:
    creation()
    run_waiting()
    return ActionPlan.objects.get(uuid=delete_node(Node.objects.latest("pk")).action_plan)


def outcomes(monkeypatch: pytest.MonkeyPatch, make: Callable[[], ActionPlan]) -> list[tuple[str, int, Node]]:
    """Return the state of each plan, how many servers were ever created for its node, and the node."""
    found = []
    for plan in kill_at_every_change(monkeypatch, make):
        node = Node.objects.latest("pk")
        found.append((plan.state, Server.objects.filter(token=str(node.uuid)).count(), node))
    assert len(found) > AT_LEAST
    return found


def test_node_gets_one_server_whenever_the_applier_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    for state, servers, node in outcomes(monkeypatch, creation):
        assert (state, servers, node.status) == ("SUCCEEDED", 1, "ACTIVE")
        assert Server.objects.present().get(uuid=node.physical_id).state == "active"


def test_node_is_deleted_with_its_server_whenever_the_applier_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    for state, servers, node in outcomes(monkeypatch, deletion):
        assert (state, servers) == ("SUCCEEDED", 1)
        assert node.deleted_at
    assert not Server.objects.present().exists()
