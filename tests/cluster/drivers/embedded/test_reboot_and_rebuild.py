"""Reboots and rebuilds of servers by the embedded cloud, also after an interruption."""

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


def interrupt_repair(kind: str, server: Server, work: str = "action", attempt: int = 1) -> None:
    """Begin a repair as an owner that is killed during it."""
    with acting_for(work, attempt), pytest.raises(Killed):
        repair(kind, server, checkpoint=die)


def again(server: Server) -> Server:
    return Server.objects.get(pk=server.pk)


def columns_of(server: Server) -> tuple[str, str | None, str]:
    row = again(server)
    return row.state, row.task_state, row.operation_owner


@pytest.mark.parametrize("kind", KINDS)
def test_server_in_error_is_repaired_on_its_node(server: Server, kind: str) -> None:
    make_node("compute2", memory=65536)
    repair(kind, server)
    assert columns_of(server) == ("active", None, "")
    assert again(server).node == server.node


@pytest.mark.parametrize(("kind", "state"), [("reboot_server", "active"), ("rebuild_server", "stopped")])
def test_stopped_server_is_started_by_a_reboot_and_not_by_a_rebuild(kind: str, state: str) -> None:
    server = make_server(node=make_node(), state="stopped")
    repair(kind, server)
    assert again(server).state == state


def test_rebuild_accepts_any_image(server: Server) -> None:
    repair("rebuild_server", server, image="an image")
    assert again(server).state == "active"


@pytest.mark.parametrize("kind", KINDS)
def test_repair_is_allowed_in_the_states_that_nova_allows(kind: str) -> None:
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
def test_task_state_is_set_during_a_repair(server: Server, kind: str) -> None:
    seen = []
    repair(kind, server, checkpoint=lambda: seen.append(columns_of(server)))
    assert seen[0] == ("error", TASK_STATES[kind], "")


@pytest.mark.parametrize("kind", KINDS)
def test_deleted_server_is_not_found(server: Server, kind: str) -> None:
    Server.objects.all().soft_delete()
    with pytest.raises(ServerNotFound, match=f"Instance {server.uuid} not found"):
        repair(kind, server)


@pytest.mark.parametrize("kind", KINDS)
def test_server_without_a_node_is_refused(kind: str) -> None:
    with pytest.raises(OperationRefused, match="is on no node"):
        repair(kind, make_server(state="error"))


@pytest.mark.parametrize("kind", KINDS)
def test_server_on_a_node_that_is_off_is_refused(kind: str) -> None:
    server = make_server(node=make_node(power_state="off"), state="error")
    with pytest.raises(OperationRefused, match="Compute node compute1 is switched off"):
        repair(kind, server)
    assert columns_of(server) == ("error", None, "")


@pytest.mark.parametrize("kind", KINDS)
def test_busy_server_is_refused_and_unchanged(kind: str) -> None:
    server = make_server(node=make_node(), task_state="powering-off", operation_owner="another/1")
    with pytest.raises(CloudBusy, match="is busy: powering-off"):
        repair(kind, server)
    assert columns_of(server) == ("active", "powering-off", "another/1")


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_repair_is_busy_for_another_owner(server: Server, kind: str) -> None:
    interrupt_repair(kind, server)
    with acting_for("another", 5), pytest.raises(CloudBusy):
        repair(kind, server)
    assert columns_of(server) == ("error", TASK_STATES[kind], "action/1")


@pytest.mark.parametrize("kind", KINDS)
def test_next_attempt_completes_an_interrupted_repair(server: Server, kind: str) -> None:
    interrupt_repair(kind, server)
    with acting_for("action", 2):
        repair(kind, server)
    assert columns_of(server) == ("active", None, "")


def test_interrupted_reboot_is_not_continued_by_a_rebuild(server: Server) -> None:
    interrupt_repair("reboot_server", server)
    with acting_for("action", 2), pytest.raises(CloudBusy, match="is busy: rebooting"):
        repair("rebuild_server", server)


@pytest.mark.parametrize("kind", KINDS)
def test_repair_continued_by_a_later_attempt_is_not_finished_by_the_earlier_one(server: Server, kind: str) -> None:
    with (
        acting_for("action", 1),
        pytest.raises(OperationFailed, match=f"was taken out of its operation {TASK_STATES[kind]}"),
    ):
        repair(kind, server, checkpoint=lambda: interrupt_repair(kind, server, attempt=2))
    assert columns_of(server) == ("error", TASK_STATES[kind], "action/2")


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_repair_is_undone_by_its_owner(server: Server, kind: str) -> None:
    interrupt_repair(kind, server)
    with acting_for("action", 2):
        assert cloud().reconcile(str(server.uuid)).status == "ERROR"
    assert columns_of(server) == ("error", None, "")


@pytest.mark.parametrize("kind", KINDS)
def test_failed_repair_leaves_the_server_unchanged(server: Server, kind: str, settings: Settings) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    with pytest.raises(OperationFailed):
        repair(kind, server)
    assert columns_of(server) == ("error", None, "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", Server.State.values)
def test_simulated_repair_equals_the_repair_by_the_embedded_cloud(kind: str, state: str) -> None:
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


def test_rebuild_from_another_image_updates_the_image() -> None:
    server = make_server(node=make_node(), image="debian")
    cloud().rebuild_server(str(server.uuid), "cirros")
    assert Server.objects.get().image == "cirros"
    cloud().rebuild_server(str(server.uuid))
    assert Server.objects.get().image == "cirros"
