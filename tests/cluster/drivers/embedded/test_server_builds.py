"""Builds of requested servers by the embedded cloud: they get a node, or become PENDING or ERROR."""

from typing import Any

import pytest
from pytest_django import Settings

from cluster.drivers.base import CloudBusy, NoValidHost, OperationFailed, OperationRefused, cloud
from cluster.drivers.embedded import lifecycle
from cluster.drivers.ownership import acting_for
from cluster.drivers.scheduler import choose_destination
from cluster.models import Server
from cluster.notifications import server_pending
from tests.builders import make_node, make_server
from tests.interleaving import Rival

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


def make_request(state: str = "building", **columns: object) -> Server:
    """Make a requested server without a node."""
    return make_server(state=state, node=None, **columns)


def build(server: Server) -> None:
    cloud().build_server(str(server.uuid))


def again(server: Server) -> Server:
    return Server.objects.get(pk=server.pk)


@pytest.mark.parametrize("state", ["building", "pending", "error"])
def test_server_that_never_ran_is_built_on_a_node(state: str) -> None:
    node, server = make_node(), make_request(state, fault={"code": 500})
    build(server)
    built = again(server)
    assert (built.state, built.node, built.task_state, built.fault) == ("active", node, None, None)
    assert built.launched_at is not None


def test_server_without_a_valid_host_is_in_error_with_the_reason() -> None:
    server = make_request()
    with pytest.raises(NoValidHost):
        build(server)
    failed = again(server)
    assert (failed.state, failed.task_state) == ("error", None)
    assert failed.fault["message"] == "No valid host was found. There are not enough hosts available."
    assert failed.fault["code"] == 500


@pytest.mark.parametrize("state", ["building", "pending"])
def test_server_without_a_valid_host_is_pending_if_the_pending_state_is_enabled(
    settings: Settings, state: str
) -> None:
    settings.USE_PENDING_STATE = True
    server = make_request(state)
    with pytest.raises(NoValidHost):
        build(server)
    assert (again(server).state, again(server).node) == ("pending", None)
    assert cloud().find_server(str(server.uuid)).status == "PENDING"


def test_failed_build_ends_in_error_even_if_the_pending_state_is_enabled(settings: Settings) -> None:
    settings.USE_PENDING_STATE, settings.EMBEDDED_CLOUD_FAILURE_RATE = True, 1.0
    make_node()
    server = make_request()
    with pytest.raises(OperationFailed):
        build(server)
    assert (again(server).state, again(server).node) == ("error", None)


def test_failed_build_does_not_change_a_server_reset_during_the_build(settings: Settings) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1.0
    node, server = make_node(), make_request()
    with pytest.raises(OperationFailed, match="was taken out of its operation spawning"):
        cloud().build_server(str(server.uuid), lambda: cloud().reset_state(str(server.uuid), "active"))
    assert (again(server).state, again(server).node) == ("active", node)


def test_failed_build_does_not_change_a_server_built_by_a_later_attempt(settings: Settings) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1.0
    node, server = make_node(), make_request()

    def begin_a_later_attempt() -> None:
        with acting_for("action", 2), pytest.raises(Killed):
            cloud().build_server(str(server.uuid), die)

    with acting_for("action", 1), pytest.raises(OperationFailed, match="was taken out of its operation spawning"):
        cloud().build_server(str(server.uuid), begin_a_later_attempt)
    assert (again(server).state, again(server).node, again(server).task_state) == ("building", node, "spawning")


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_server_built_while_another_process_finds_no_host_stays_active(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.USE_PENDING_STATE = True
    server = make_request()

    def build_where_there_is_capacity() -> None:
        make_node()
        build(server)

    rival = Rival(build_where_there_is_capacity)

    def find_none(*arguments: Any) -> Any:
        try:
            return choose_destination(*arguments)
        finally:
            rival.start()

    monkeypatch.setattr(lifecycle, "choose_destination", find_none)
    with pytest.raises(NoValidHost):
        build(server)
    rival.result()
    assert (again(server).state, again(server).node is None) == ("active", False)


def test_pending_signal_is_sent_once_after_commit(
    settings: Settings, django_capture_on_commit_callbacks: object
) -> None:
    settings.USE_PENDING_STATE = True
    reported: list[str] = []

    def listen(server: str, **_: object) -> None:
        reported.append(server)

    server_pending.connect(listen)
    server = make_request()
    for _ in range(2):
        with django_capture_on_commit_callbacks(execute=True), pytest.raises(NoValidHost):  # type: ignore[operator]
            build(server)
    server_pending.disconnect(listen)
    assert reported == [str(server.uuid)]


def test_server_that_ran_before_is_not_built() -> None:
    server = make_server(node=make_node(), state="error")
    with pytest.raises(OperationRefused, match="has run before: it can be rebuilt"):
        build(server)


def test_server_built_by_another_owner_is_busy() -> None:
    server = make_request(task_state="spawning", operation_owner="another/1")
    with pytest.raises(CloudBusy):
        build(server)


def test_later_attempt_builds_the_server_on_the_reserved_node(settings: Settings) -> None:
    node, server = make_node(), make_request()
    with acting_for("action", 1), pytest.raises(Killed):
        cloud().build_server(str(server.uuid), die)
    assert (again(server).state, again(server).node) == ("building", node)
    with acting_for("action", 2):
        build(server)
    assert (again(server).state, again(server).node) == ("active", node)


def test_server_is_built_in_the_requested_zone() -> None:
    make_node("elsewhere")
    node, server = make_node("here", zone="az1"), make_request(pinned_az="az1")
    build(server)
    assert again(server).node == node


@pytest.mark.parametrize("state", ["pending", "building", "active"])
def test_server_state_is_reset_to_error(state: str) -> None:
    server = make_request(state)
    cloud().reset_state(str(server.uuid), "error")
    assert (again(server).state, again(server).task_state) == ("error", None)


def test_state_of_a_server_on_a_node_is_reset_to_active() -> None:
    server = make_server(node=make_node(), state="error", task_state="migrating", fault={"code": 500})
    cloud().reset_state(str(server.uuid), "active")
    assert (again(server).state, again(server).task_state, again(server).fault) == ("active", None, None)


def test_state_of_a_server_without_a_node_cannot_be_reset_to_active() -> None:
    server = make_request("pending")
    with pytest.raises(OperationRefused, match="is on no node"):
        cloud().reset_state(str(server.uuid), "active")
    assert again(server).state == "pending"
