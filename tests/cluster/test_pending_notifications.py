"""Notifications in the formats of Nova about servers that become or no longer are PENDING."""

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


def test_new_pending_server_is_notified_once_in_the_formats_of_nova(settings: Settings) -> None:
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


def delete_requested(server: Server) -> None:
    assert delete_unplaced(server)


def delete(server: Server) -> None:
    cloud().delete_server(str(server.uuid))


@pytest.mark.parametrize(
    ("end_pending", "state", "task_state"),
    [
        (build, "building", "spawning"),
        (reset, "error", None),
        (delete_requested, "deleted", None),
        (delete, "deleted", None),
    ],
)
def test_server_no_longer_pending_is_notified_once_in_the_format_of_nova(
    end_pending: Callable[[Server], None], state: str, task_state: str | None
) -> None:
    listen()
    server = make_server("Web 1", state="pending", flavor="small", project_id="shop")
    end_pending(server)
    assert written_event_types() == ["instance.update"]
    [update] = payloads("instance.update")
    data = update["nova_object.data"]
    assert (data["uuid"], data["state"], data["task_state"]) == (str(server.uuid), state, task_state)
    changed = data["state_update"]["nova_object.data"]
    assert (changed["old_state"], changed["state"], changed["new_task_state"]) == ("pending", state, task_state)
    assert (data["host_name"], data["terminated_at"] is not None) == ("web-1", state == "deleted")


@pytest.mark.parametrize("end_pending", [reset, delete])
def test_change_of_a_server_that_is_not_pending_is_not_notified(end_pending: Callable[[Server], None]) -> None:
    listen()
    end_pending(make_server(node=make_node()))
    assert written_event_types() == []


def test_server_in_error_without_a_valid_host_is_not_notified() -> None:
    listen()
    with pytest.raises(NoValidHost):
        cloud().build_server(str(make_server(state="building").uuid))
    assert written_event_types() == []
