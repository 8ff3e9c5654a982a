"""Servers that the embedded cloud reboots and rebuilds, and what a killed process leaves behind."""

from typing import Any

import pytest
from pytest_django import Settings

from cluster.drivers.base import CloudBusy, CloudError, OperationFailed, OperationRefused, ServerNotFound, cloud
from cluster.drivers.ownership import acting_for
from cluster.models import Server
from cluster.simulated import SimulatedCloud
from tests.builders import make_node, make_server

pytestmark = pytest.mark.django_db
KINDS = ["reboot_server", "rebuild_server"]
TASK_STATES = {"reboot_server": "rebooting", "rebuild_server": "rebuilding"}
ALLOWED = {
    "reboot_server": ["active", "paused", "suspended", "stopped", "error"],
    "rebuild_server": ["active", "stopped", "error"],
}


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


@pytest.fixture
def server() -> Server:
    return make_server(node=make_node(), state="error")


def repair(kind: str, server: Server, **options: Any) -> None:
    getattr(cloud(), kind)(str(server.uuid), **options)


def leave_behind(kind: str, server: Server, work: str = "action", attempt: int = 1) -> None:
    """Begin a repair, and die in the middle of it."""
    with acting_for(work, attempt), pytest.raises(Killed):
        repair(kind, server, checkpoint=die)


def again(server: Server) -> Server:
    return Server.objects.get(pk=server.pk)


def columns_of(server: Server) -> tuple[str, str | None, str]:
    row = again(server)
    return row.state, row.task_state, row.operation_owner


@pytest.mark.parametrize("kind", KINDS)
def test_a_broken_server_runs_again_where_it_was(server: Server, kind: str) -> None:
    make_node("compute2", memory=65536)
    repair(kind, server)
    assert columns_of(server) == ("active", None, "")
    assert again(server).node == server.node


@pytest.mark.parametrize(("kind", "state"), [("reboot_server", "active"), ("rebuild_server", "stopped")])
def test_a_stopped_server_runs_when_it_is_rebooted_but_not_when_it_is_rebuilt(kind: str, state: str) -> None:
    server = make_server(node=make_node(), state="stopped")
    repair(kind, server)
    assert again(server).state == state


def test_any_image_will_do(server: Server) -> None:
    repair("rebuild_server", server, image="an image")
    assert again(server).state == "active"


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_can_be_repaired_in_the_states_that_nova_allows_alone(kind: str) -> None:
    node = make_node(vcpus=100, memory=100000, disk=10000)
    for state in Server.State:
        make_server(state, node, state=state)
    allowed = []
    for server in Server.objects.all():
        try:
            repair(kind, server)
        except OperationRefused:
            continue
        allowed.append(server.name)
    assert sorted(allowed) == sorted(ALLOWED[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_while_it_is_repaired_it_says_so(server: Server, kind: str) -> None:
    seen = []
    repair(kind, server, checkpoint=lambda: seen.append(columns_of(server)))
    assert seen[0] == ("error", TASK_STATES[kind], "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_gone_is_not_found(server: Server, kind: str) -> None:
    Server.objects.all().soft_delete()
    with pytest.raises(ServerNotFound, match=f"Instance {server.uuid} not found"):
        repair(kind, server)


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_was_scheduled_nowhere_is_refused(kind: str) -> None:
    with pytest.raises(OperationRefused, match="is on no node"):
        repair(kind, make_server(state="error"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_that_is_switched_off_repairs_nothing(kind: str) -> None:
    server = make_server(node=make_node(power_state="off"), state="error")
    with pytest.raises(OperationRefused, match="Compute node compute1 is switched off"):
        repair(kind, server)
    assert columns_of(server) == ("error", None, "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_that_is_busy_is_left_alone(kind: str) -> None:
    server = make_server(node=make_node(), task_state="powering-off", operation_owner="another/1")
    with pytest.raises(CloudBusy, match="is busy: powering-off"):
        repair(kind, server)
    assert columns_of(server) == ("active", "powering-off", "another/1")


@pytest.mark.parametrize("kind", KINDS)
def test_another_does_not_take_over_a_repair(server: Server, kind: str) -> None:
    leave_behind(kind, server)
    with acting_for("another", 5), pytest.raises(CloudBusy):
        repair(kind, server)
    assert columns_of(server) == ("error", TASK_STATES[kind], "action/1")


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_recovers_the_work_of_a_killed_one_repairs_it(server: Server, kind: str) -> None:
    leave_behind(kind, server)
    with acting_for("action", 2):
        repair(kind, server)
    assert columns_of(server) == ("active", None, "")


def test_one_repair_is_not_gone_on_with_by_the_other(server: Server) -> None:
    leave_behind("reboot_server", server)
    with acting_for("action", 2), pytest.raises(CloudBusy, match="is busy: rebooting"):
        repair("rebuild_server", server)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slow_process_does_not_end_what_its_successor_goes_on_with(server: Server, kind: str) -> None:
    with (
        acting_for("action", 1),
        pytest.raises(OperationFailed, match=f"was taken out of its operation {TASK_STATES[kind]}"),
    ):
        repair(kind, server, checkpoint=lambda: leave_behind(kind, server, attempt=2))
    assert columns_of(server) == ("error", TASK_STATES[kind], "action/2")


@pytest.mark.parametrize("kind", KINDS)
def test_a_repair_that_was_interrupted_is_undone_by_its_owner(server: Server, kind: str) -> None:
    leave_behind(kind, server)
    with acting_for("action", 2):
        assert cloud().reconcile(str(server.uuid)).status == "ERROR"
    assert columns_of(server) == ("error", None, "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_repair_that_fails_leaves_the_server_as_it_was(server: Server, kind: str, settings: Settings) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    with pytest.raises(OperationFailed):
        repair(kind, server)
    assert columns_of(server) == ("error", None, "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", Server.State.values)
def test_a_repair_is_foreseen_as_the_embedded_cloud_does_it(kind: str, state: str) -> None:
    server = make_server(node=make_node(), state=state)
    model = SimulatedCloud.load()
    foreseen, done = ((attempt(to, kind, server), to.find_server(str(server.uuid))) for to in (model, cloud()))
    assert foreseen == done


def attempt(to: Any, kind: str, server: Server) -> str | None:
    try:
        getattr(to, kind)(str(server.uuid))
    except CloudError as refusal:
        return str(refusal)
    return None


def test_a_server_that_is_rebuilt_from_another_image_says_so() -> None:
    server = make_server(node=make_node(), image="debian")
    cloud().rebuild_server(str(server.uuid), "cirros")
    assert Server.objects.get().image == "cirros"
    cloud().rebuild_server(str(server.uuid))
    assert Server.objects.get().image == "cirros"
