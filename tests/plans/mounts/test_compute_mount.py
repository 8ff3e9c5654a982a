"""The compute mount in the format of Nova: microversions, errors, servers, and permissions for their events."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from rest_framework.test import APIClient

from cluster.models import Server
from tests.builders import make_node, make_operation, make_server
from watcher_site.models import ProjectMember

pytestmark = pytest.mark.django_db


def get(user: User | None, path: str = "", version: str | None = None, **headers: str) -> HttpResponse:
    client = APIClient()
    if user:
        client.force_authenticate(user)
    headers_sent = {"OpenStack-API-Version": f"compute {version}"} if version else {}
    return client.get(f"/compute/v2.1{path}", headers=headers_sent | headers)


def event(user: User, version: str, server: Server) -> dict[str, Any]:
    answer = get(user, f"/servers/{server.uuid}/os-instance-actions/req-1", version).json()
    [found] = answer["instanceAction"].get("events") or [{}]
    return dict(found)


def test_version_list_is_public_and_servers_require_a_token() -> None:
    [version] = APIClient().get("/compute/").json()["versions"]
    assert (version["id"], version["min_version"], version["version"]) == ("v2.1", "2.1", "2.84")
    assert get(None).json()["version"]["links"][0]["href"] == "http://testserver/compute/v2.1/"
    assert get(None, "/servers").status_code == 401


@pytest.mark.parametrize(
    ("headers", "used"),
    [
        ({}, "2.1"),
        ({"OpenStack-API-Version": "infra-optim 1.9, compute 2.58"}, "2.58"),
        ({"OpenStack-API-Version": "compute latest"}, "2.84"),
        ({"X-OpenStack-Nova-API-Version": "2.66"}, "2.66"),
    ],
)
def test_responses_name_the_used_microversion(cloud_admin: User, headers: dict[str, str], used: str) -> None:
    answer = get(cloud_admin, "/servers", **headers)
    assert answer["OpenStack-API-Version"] == f"compute {used}"
    assert answer["X-OpenStack-Nova-API-Version"] == used
    assert "OpenStack-API-Version" in answer["Vary"]


@pytest.mark.parametrize(
    ("path", "version", "status", "name", "words"),
    [
        ("/servers", "2.85", 406, "computeFault", "Version 2.85 is not supported by the API. Minimum is 2.1"),
        ("/servers", "two", 400, "badRequest", "API Version String two is of invalid format."),
        ("/servers?colour=red", "2.1", 400, "badRequest", "'colour' was unexpected"),
        ("/servers?marker=x", "2.1", 400, "badRequest", "marker [x] not found"),
        ("/servers/none", "2.1", 404, "itemNotFound", "Instance none could not be found."),
        ("/servers/none/os-instance-actions", "2.1", 404, "itemNotFound", "Instance none could not be found."),
    ],
)
def test_refusals_have_the_format_of_nova(
    cloud_admin: User, path: str, version: str, status: int, name: str, words: str
) -> None:
    answer = get(cloud_admin, path, version)
    assert answer.status_code == answer.json()[name]["code"] == status
    assert words in answer.json()[name]["message"]


def test_pending_servers_have_status_error_and_lists_are_filtered_and_paginated(cloud_admin: User) -> None:
    make_server("other", make_node("here", zone="az1"))
    waiting = make_server("web-1", state="pending", flavor="small", fault={"code": 500, "message": "No valid host"})
    [found] = get(cloud_admin, "/servers/detail?name=web-1", "2.1").json()["servers"]
    assert (found["id"], found["status"], found["OS-EXT-STS:vm_state"]) == (str(waiting.uuid), "ERROR", "error")
    assert (found["flavor"]["id"], found["fault"]["message"]) == ("small", "No valid host")
    assert get(cloud_admin, f"/servers/{waiting.uuid}", "2.47").json()["server"]["flavor"]["vcpus"] == 2
    newest = get(cloud_admin, "/servers?limit=1").json()
    assert [one["name"] for one in newest["servers"]] == ["web-1"]
    older = get(cloud_admin, newest["servers_links"][0]["href"].removeprefix("http://testserver/compute/v2.1"))
    assert [one["name"] for one in older.json()["servers"]] == ["other"]


def test_event_fields_depend_on_the_microversion_and_the_permissions(
    cloud_admin: User, reader: User, stranger: User
) -> None:
    ProjectMember.objects.create(user=stranger, project_id="shop")
    server = make_server(project_id="shop")
    make_operation(server, "stop", "Cancelled", request_id="req-1")
    plain = {"event", "start_time", "finish_time", "result"}
    assert set(event(stranger, "2.50", server)) == set()
    assert set(event(stranger, "2.51", server)) == plain
    assert set(event(stranger, "2.84", server)) == plain | {"hostId"}
    assert set(event(cloud_admin, "2.50", server)) == plain | {"traceback"}
    assert set(event(cloud_admin, "2.83", server)) == plain | {"traceback", "hostId", "host"}
    assert set(event(cloud_admin, "2.84", server)) == plain | {"traceback", "hostId", "host", "details"}
    assert set(event(reader, "2.84", server)) == plain | {"traceback", "hostId", "host", "details"}
    assert event(cloud_admin, "2.84", server)["result"] == "Error"


def test_lists_are_paginated_from_2_58_on_and_include_deleted_servers_from_2_21_on(cloud_admin: User) -> None:
    server = make_server()
    for number in range(2):
        make_operation(server, request_id=f"req-{number}")
    path = f"/servers/{server.uuid}/os-instance-actions"
    assert len(get(cloud_admin, f"{path}?limit=1", "2.57").json()["instanceActions"]) == 2
    paged = get(cloud_admin, f"{path}?limit=1", "2.58").json()
    assert [one["request_id"] for one in paged["instanceActions"]] == ["req-1"]
    assert "marker=req-1" in paged["links"][0]["href"]
    assert get(cloud_admin, f"{path}?changes-before=2026-01-01", "2.65").status_code == 400
    Server.objects.all().soft_delete()
    assert [get(cloud_admin, path, version).status_code for version in ("2.20", "2.21")] == [404, 200]
