"""Evacuations from a failed node of the embedded cloud, and the fencing of that node."""

from typing import Any

import pytest
from pytest_django import Settings

from cluster.drivers.base import CloudBusy, CloudError, NoValidHost, OperationFailed, OperationRefused, cloud
from cluster.drivers.ownership import acting_for
from cluster.models import ComputeNode, Server
from cluster.simulated import SimulatedCloud
from tests.builders import make_node, make_server

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


@pytest.fixture
def failed() -> ComputeNode:
    """A node that is down, and another with capacity."""
    make_node("compute2")
    return make_node("compute1", state="down", status="disabled")


def evacuate(server: Server, destination: str | None = None, **options: Any) -> None:
    cloud().evacuate(str(server.uuid), destination, **options)


def place_of(server: Server) -> tuple[str, str, str | None, str | None]:
    row = Server.objects.select_related("node", "destination").get(pk=server.pk)
    assert row.node
    return row.node.hostname, row.state, row.task_state, row.destination and row.destination.hostname


@pytest.mark.parametrize(("state", "then"), [("active", "active"), ("stopped", "stopped"), ("error", "active")])
def test_evacuated_server_is_active_unless_it_was_stopped(failed: ComputeNode, state: str, then: str) -> None:
    server = make_server(node=failed, state=state)
    evacuate(server)
    assert place_of(server) == ("compute2", then, None, None)


def test_server_is_evacuated_to_the_requested_host(failed: ComputeNode) -> None:
    make_node("roomy", memory=65536)
    server = make_server(node=failed)
    evacuate(server, "compute2")
    assert place_of(server)[0] == "compute2"


def test_evacuation_from_a_node_that_is_up_is_refused() -> None:
    make_node("compute2")
    server = make_server(node=make_node())
    with pytest.raises(OperationRefused, match=r"^Compute service of compute1 is still in use$"):
        evacuate(server)
    assert place_of(server) == ("compute1", "active", None, None)


def test_server_without_a_valid_host_stays_on_its_node(failed: ComputeNode) -> None:
    server = make_server(node=failed, memory=100000)
    with pytest.raises(NoValidHost):
        evacuate(server)
    assert place_of(server) == ("compute1", "active", None, None)


def test_evacuation_reserves_capacity_on_the_destination(failed: ComputeNode) -> None:
    server, seen = make_server(node=failed), []
    evacuate(server, checkpoint=lambda: seen.append(place_of(server)))
    assert seen[0] == ("compute1", "active", "rebuilding", "compute2")


def test_concurrent_evacuation_of_a_server_by_another_owner_is_refused_as_busy(failed: ComputeNode) -> None:
    server, refused = make_server(node=failed), []

    def begin_too() -> None:
        with acting_for("another", 1), pytest.raises(CloudBusy) as caught:
            evacuate(server)
        refused.append(str(caught.value))

    with acting_for("action", 1):
        evacuate(server, checkpoint=begin_too)
    assert refused[0] == f"Instance {server.uuid} is busy: rebuilding"
    assert place_of(server) == ("compute2", "active", None, None)


def test_interrupted_evacuation_is_undone_by_its_owner_only(failed: ComputeNode) -> None:
    server = make_server(node=failed)
    with acting_for("action", 1), pytest.raises(Killed):
        evacuate(server, checkpoint=die)
    with acting_for("another", 5):
        cloud().reconcile(str(server.uuid))
    assert place_of(server) == ("compute1", "active", "rebuilding", "compute2")
    with acting_for("action", 2):
        cloud().reconcile(str(server.uuid))
    assert place_of(server) == ("compute1", "active", None, None)


def test_failed_evacuation_leaves_the_server_unchanged(failed: ComputeNode, settings: Settings) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    server = make_server(node=failed)
    with pytest.raises(OperationFailed):
        evacuate(server)
    assert place_of(server) == ("compute1", "active", None, None)


@pytest.mark.parametrize("state", Server.State.values)
def test_simulated_evacuation_equals_the_evacuation_by_the_embedded_cloud(failed: ComputeNode, state: str) -> None:
    server = make_server(node=failed, state=state)
    model = SimulatedCloud.load()
    foreseen, done = ((attempt(to, server), to.find_server(str(server.uuid))) for to in (model, cloud()))
    assert foreseen == done


def attempt(to: Any, server: Server) -> str | None:
    try:
        to.evacuate(str(server.uuid))
    except CloudError as refusal:
        return str(refusal)
    return None


def test_failed_node_with_servers_can_be_fenced(failed: ComputeNode) -> None:
    make_server(node=failed)
    for to in (SimulatedCloud.load(), cloud()):
        assert to.find_power_state("compute1") == "on"
        to.power_off(str(failed.uuid), is_fencing=True)
        assert to.find_power_state("compute1") == "off"


def test_node_that_is_up_again_is_not_fenced(failed: ComputeNode) -> None:
    def come_back() -> None:
        ComputeNode.objects.filter(pk=failed.pk).update(state="up")

    with pytest.raises(OperationRefused, match=r"^Compute node compute1 is up: it is not fenced$"):
        cloud().power_off(str(failed.uuid), come_back, is_fencing=True)
    assert cloud().find_power_state("compute1") == "on"


def test_power_state_of_an_unknown_host_is_none(failed: ComputeNode) -> None:
    assert [to.find_power_state("nowhere") for to in (SimulatedCloud.load(), cloud())] == [None, None]
