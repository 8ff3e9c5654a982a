"""Switching nodes on and off: never one with running servers."""

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


def test_an_idle_node_is_switched_off_and_its_service_with_it(node: ComputeNode) -> None:
    make_server("resting", node, state="stopped")
    action = switch(node, "off")
    action.pre_condition()
    assert action.execute() == DONE
    assert power() == ("off", "down")


def test_a_node_is_switched_on_again(node: ComputeNode) -> None:
    switch(node, "off").execute()
    assert switch(node, "on").execute() == DONE
    assert power() == ("on", "up")


@pytest.mark.parametrize("columns", [{}, {"state": "paused"}, {"state": "stopped", "task_state": "powering-on"}])
def test_a_node_with_running_servers_is_not_switched_off(node: ComputeNode, columns: dict[str, str]) -> None:
    make_server("web-1", node, **columns)
    with pytest.raises(ActionFailed, match=r"^Compute node compute1 has 1 running server$"):
        switch(node, "off").execute()
    assert power() == ("on", "up")


def test_a_server_that_arrives_while_a_node_is_switched_off_keeps_it_on(node: ComputeNode) -> None:
    with pytest.raises(OperationRefused, match="compute1 has 1 running server"):
        cloud().power_off(str(node.uuid), lambda: make_server("web-1", node) and None)
    assert power() == ("on", "up")


def test_a_node_that_is_so_already_is_left_alone(node: ComputeNode) -> None:
    make_server("web-1", node)
    assert switch(node, "on").execute() == DONE
    assert ComputeNode.objects.get().updated_at is None


@pytest.mark.parametrize("identifier", ["00000000-0000-0000-0000-000000000000", "no-uuid"])
def test_an_unknown_node_fails(identifier: str) -> None:
    with pytest.raises(CloudError, match=f"^Compute node {identifier} not found$"):
        switch(identifier, "off").execute()


def test_reverting_does_the_opposite(node: ComputeNode) -> None:
    action = switch(node, "off")
    action.execute()
    assert action.revert()
    assert power() == ("on", "up")


@pytest.mark.parametrize(("state", "answer"), [("on", Recovery.DONE), ("off", Recovery.AGAIN)])
def test_after_a_crash_the_node_tells_what_was_done(node: ComputeNode, state: str, answer: Recovery) -> None:
    assert switch(node, state).recover() is answer


def test_it_can_not_be_aborted(node: ComputeNode) -> None:
    assert switch(node, "off").abort() is False


def test_no_server_is_scheduled_to_a_node_that_is_off(node: ComputeNode) -> None:
    switch(node, "off").execute()
    server = make_server("web-1", make_node("compute2"))
    with pytest.raises(NoValidHost):
        cloud().live_migrate(str(server.uuid))


def test_no_server_is_started_on_a_node_that_is_off(node: ComputeNode) -> None:
    server = make_server("web-1", node, state="stopped")
    switch(node, "off").execute()
    with pytest.raises(OperationRefused, match="Compute node compute1 is switched off"):
        cloud().start(str(server.uuid))
    assert Server.objects.get().task_state is None
