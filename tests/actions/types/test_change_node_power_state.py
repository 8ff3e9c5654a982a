"""change_node_power_state: compute nodes are switched on and off, unless they have running servers."""

import pytest

from actions.types.base import DONE, ActionContext, ActionFailed, ActionType, Recovery, make
from cluster.drivers.base import CloudError, NoValidHost, OperationRefused, cloud
from cluster.models import ComputeNode, Server
from tests.builders import make_node, make_server

pytestmark = pytest.mark.django_db


@pytest.fixture
def node() -> ComputeNode:
    return make_node()


def switch(node: ComputeNode | str, state: str) -> ActionType:
    identifier = node if isinstance(node, str) else str(node.uuid)
    return make("change_node_power_state", {"resource_id": identifier, "state": state}, ActionContext())


def power() -> tuple[str, str]:
    node = ComputeNode.objects.get()
    return node.power_state, node.state


def test_idle_node_and_its_service_are_switched_off(node: ComputeNode) -> None:
    make_server("resting", node, state="stopped")
    action = switch(node, "off")
    action.pre_condition()
    assert action.execute() == DONE
    assert power() == ("off", "down")


def test_node_is_switched_on(node: ComputeNode) -> None:
    switch(node, "off").execute()
    assert switch(node, "on").execute() == DONE
    assert power() == ("on", "up")


@pytest.mark.parametrize("columns", [{}, {"state": "paused"}, {"state": "stopped", "task_state": "powering-on"}])
def test_switching_off_a_node_with_running_servers_fails(node: ComputeNode, columns: dict[str, str]) -> None:
    make_server("web-1", node, **columns)
    with pytest.raises(ActionFailed, match=r"^Compute node compute1 has 1 running server$"):
        switch(node, "off").execute()
    assert power() == ("on", "up")


def test_node_stays_on_if_a_server_arrives_during_the_switch(node: ComputeNode) -> None:
    with pytest.raises(OperationRefused, match="compute1 has 1 running server"):
        cloud().power_off(str(node.uuid), lambda: make_server("web-1", node) and None)
    assert power() == ("on", "up")


def test_node_in_the_requested_power_state_is_not_changed(node: ComputeNode) -> None:
    make_server("web-1", node)
    assert switch(node, "on").execute() == DONE
    assert ComputeNode.objects.get().updated_at is None


@pytest.mark.parametrize("identifier", ["00000000-0000-0000-0000-000000000000", "no-uuid"])
def test_unknown_node_fails(identifier: str) -> None:
    with pytest.raises(CloudError, match=f"^Compute node {identifier} not found$"):
        switch(identifier, "off").execute()


def test_revert_switches_the_node_back(node: ComputeNode) -> None:
    action = switch(node, "off")
    action.execute()
    assert action.revert()
    assert power() == ("on", "up")


@pytest.mark.parametrize(("state", "answer"), [("on", Recovery.DONE), ("off", Recovery.AGAIN)])
def test_recover_depends_on_the_power_state_of_the_node(node: ComputeNode, state: str, answer: Recovery) -> None:
    assert switch(node, state).recover() is answer


def test_power_change_cannot_be_aborted(node: ComputeNode) -> None:
    assert switch(node, "off").abort() is False


def test_scheduler_excludes_a_node_that_is_off(node: ComputeNode) -> None:
    switch(node, "off").execute()
    server = make_server("web-1", make_node("compute2"))
    with pytest.raises(NoValidHost):
        cloud().live_migrate(str(server.uuid))


def test_server_on_a_node_that_is_off_cannot_be_started(node: ComputeNode) -> None:
    server = make_server("web-1", node, state="stopped")
    switch(node, "off").execute()
    with pytest.raises(OperationRefused, match="Compute node compute1 is switched off"):
        cloud().start(str(server.uuid))
    assert Server.objects.get().task_state is None
