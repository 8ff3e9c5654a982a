"""What is told, as Nova would, of a server that finds no host."""

import pytest
from pytest_django import Settings

from cluster.drivers.base import NoValidHost, cloud
from tests.builders import make_server
from tests.watcher_site.notifications.outbox import listen, payloads, told
from watcher_site.models import Notification

pytestmark = pytest.mark.django_db


def test_a_server_that_becomes_pending_is_told_of_in_the_shapes_of_nova_once(settings: Settings) -> None:
    settings.USE_PENDING_STATE = True
    listen()
    server = make_server(state="building", flavor="small", project_id="shop")
    for _ in range(2):
        with pytest.raises(NoValidHost):
            cloud().build_server(str(server.uuid))
    assert told() == [
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


def test_a_server_that_is_in_error_is_not_told_of_as_one_that_waits() -> None:
    listen()
    with pytest.raises(NoValidHost):
        cloud().build_server(str(make_server(state="building").uuid))
    assert told() == []
