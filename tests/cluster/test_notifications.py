"""Nova's notifications of a server that finds no host."""

from collections.abc import Callable

import pytest
from pytest_django import Settings

from cluster.drivers.base import NoValidHost, cloud
from cluster.models import Server
from cluster.operations.servers import delete_unplaced
from tests.builders import make_node, make_server
from tests.watcher_site.notifications.outbox import listen, payloads, written_event_types
from watcher_site.models import Notification

pytestmark = pytest.mark.django_db


def test_a_server_that_becomes_pending_is_notified_in_the_shapes_of_nova_once(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True
    listen()
    server = make_server(state="building", flavor="small", project_id="shop")
    for _ in range(2):
        with pytest.raises(NoValidHost):
            cloud().build_server(str(server.uuid))
    assert written_event_types() == [
        "scheduler.select_destinations.start",
        "scheduler.select_destinations.end",
        "instance.update",
    ]
    (update,) = payloads("instance.update")
    assert (update["nova_object.name"], update["nova_object.version"]) == ("InstanceUpdatePayload", "2.1")
    data = update["nova_object.data"]
    assert (data["uuid"], data["tenant_id"], data["state"]) == (str(server.uuid), "shop", "pending")
    assert data["state_update"]["nova_object.data"]["old_state"] == "building"
    assert data["flavor"]["nova_object.data"]["memory_mb"] == 2048
    request = payloads("scheduler.select_destinations.end")[0]["nova_object.data"]
    assert (request["instance_uuid"], request["num_instances"]) == (str(server.uuid), 1)
    assert set(Notification.objects.values_list("object_uuid", flat=True)) == {server.uuid}


def build(server: Server) -> None:
    make_node()
    cloud().build_server(str(server.uuid))


def reset(server: Server) -> None:
    cloud().reset_state(str(server.uuid), "error")


def forget(server: Server) -> None:
    assert delete_unplaced(server)


def delete(server: Server) -> None:
    cloud().delete_server(str(server.uuid))


@pytest.mark.parametrize(
    ("leave", "state", "task_state"),
    [
        (build, "building", "spawning"),
        (reset, "error", None),
        (forget, "deleted", None),
        (delete, "deleted", None),
    ],
)
def test_a_server_that_is_pending_no_longer_is_notified_in_the_shapes_of_nova_once(
    leave: Callable[[Server], None], state: str, task_state: str | None
) -> None:
    listen()
    server = make_server("Web 1", state="pending", flavor="small", project_id="shop")
    leave(server)
    assert written_event_types() == ["instance.update"]
    [update] = payloads("instance.update")
    data = update["nova_object.data"]
    assert (data["uuid"], data["state"], data["task_state"]) == (str(server.uuid), state, task_state)
    changed = data["state_update"]["nova_object.data"]
    assert (changed["old_state"], changed["state"], changed["new_task_state"]) == ("pending", state, task_state)
    assert (data["host_name"], data["terminated_at"] is not None) == ("web-1", state == "deleted")


@pytest.mark.parametrize("leave", [reset, delete])
def test_a_server_that_was_not_pending_is_not_notified(leave: Callable[[Server], None]) -> None:
    listen()
    leave(make_server(node=make_node()))
    assert written_event_types() == []


def test_a_server_that_is_in_error_is_not_notified_as_one_that_waits() -> None:
    listen()
    with pytest.raises(NoValidHost):
        cloud().build_server(str(make_server(state="building").uuid))
    assert written_event_types() == []
