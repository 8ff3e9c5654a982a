"""Instance actions of servers through the API: format, pagination and permissions."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries, Settings

from cluster.models import Server
from tests.api import Caller, fault
from tests.builders import make_node, make_operation, make_server
from watcher_site.configuration.policies import ADMIN, EVENT_DETAILS, PROJECT_READER
from watcher_site.models import ProjectMember

pytestmark = pytest.mark.django_db
BEGIN = datetime(2026, 11, 20, 22, tzinfo=UTC)
UNKNOWN = str(uuid4())


@pytest.fixture
def server() -> Server:
    server: Server = make_server(node=make_node(), project_id="shop")
    return server


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.9")


@pytest.fixture
def member(stranger: User) -> Caller:
    ProjectMember.objects.create(user=stranger, project_id="shop")
    return Caller(stranger, "1.9")


def path(server: Server, request: str = "") -> str:
    return f"/servers/{server.uuid}/os-instance-actions{'/' if request else ''}{request}"


def requests(answer: Any) -> list[str]:
    return [one["request_id"] for one in answer.json()["instanceActions"]]


def make_three(server: Server) -> None:
    for day in range(3):
        make_operation(server, request_id=f"req-{day}", start_time=BEGIN + timedelta(days=day))


def test_instance_actions_are_listed_newest_first_in_the_format_of_nova(api: Caller, server: Server) -> None:
    make_operation(server, "stop", request_id="req-1", start_time=BEGIN)
    make_operation(server, "rebuild", "Error", request_id="req-2", start_time=BEGIN + timedelta(1), user_id="rosa")
    make_operation(make_server("other"))
    rebuilt, stopped = api.get(path(server)).json()["instanceActions"]
    assert rebuilt == {
        "action": "rebuild",
        "instance_uuid": str(server.uuid),
        "request_id": "req-2",
        "user_id": "rosa",
        "project_id": None,
        "start_time": "2026-11-21T22:00:00.000000",
        "updated_at": "2026-11-21T22:00:00.000000",
        "message": "Error",
    }
    assert (stopped["action"], stopped["message"], stopped["user_id"]) == ("stop", None, None)


def test_instance_action_is_shown_with_its_events_newest_first(api: Caller, server: Server) -> None:
    make_operation(server, "stop", "Success", "Error", request_id="req-1", start_time=BEGIN)
    shown = api.get(path(server, "req-1")).json()["instanceAction"]
    failed, began = shown["events"]
    assert failed == {
        "event": "execute",
        "start_time": "2026-11-20T23:00:00.000000",
        "finish_time": "2026-11-20T23:01:00.000000",
        "result": "Error",
        "hostId": failed["hostId"],
        "host": "worker-1",
        "details": "It was Error.",
    }
    assert len(failed["hostId"]) == 56
    # Only failed events have details.
    assert (began["result"], began["details"]) == ("Success", None)


def keys(caller: Caller, server: Server) -> set[str]:
    [event] = caller.get(path(server, "req-1")).json()["instanceAction"]["events"]
    return set(event) & {"details", "host"}


def test_event_details_are_shown_from_1_9_on_to_readers_but_not_to_the_owner_of_the_server(
    cloud_admin: User, reader: User, member: Caller, server: Server
) -> None:
    make_operation(server, "stop", "Error", request_id="req-1")
    assert keys(Caller(cloud_admin, "1.8"), server) == {"host"}
    assert keys(Caller(cloud_admin, "1.9"), server) == {"host", "details"}
    assert keys(Caller(reader, "1.9"), server) == {"host", "details"}
    assert keys(member, server) == set()


def test_policy_rule_admin_hides_event_details_from_readers(
    cloud_admin: User, reader: User, member: Caller, server: Server, settings: Settings
) -> None:
    settings.POLICIES = {EVENT_DETAILS: ADMIN}
    make_operation(server, "stop", "Error", request_id="req-1")
    assert keys(Caller(cloud_admin, "1.9"), server) == {"host", "details"}
    assert keys(Caller(reader, "1.9"), server) == {"host"}
    assert keys(member, server) == set()


def test_policy_rule_project_reader_shows_event_details_to_the_owner_of_the_server(
    reader: User, member: Caller, server: Server, settings: Settings
) -> None:
    settings.POLICIES = {EVENT_DETAILS: PROJECT_READER}
    make_operation(server, "stop", "Error", request_id="req-1")
    assert keys(Caller(reader, "1.9"), server) == {"host", "details"}
    assert keys(member, server) == {"details"}


def test_instance_actions_are_paginated_and_filtered_by_time(api: Caller, server: Server) -> None:
    make_three(server)
    first = api.get(f"{path(server)}?limit=2").json()
    assert [one["request_id"] for one in first["instanceActions"]] == ["req-2", "req-1"]
    [link] = first["links"]
    assert link == {"rel": "next", "href": f"http://testserver/v1{path(server)}?limit=2&marker=req-1"}
    assert requests(api.get(f"{path(server)}?limit=2&marker=req-1")) == ["req-0"]
    assert requests(api.get(f"{path(server)}?limit=0")) == []
    assert requests(api.get(f"{path(server)}?changes-since=2026-11-21T22:00:00Z")) == ["req-2", "req-1"]
    assert requests(api.get(f"{path(server)}?changes-before=2026-11-21T23:00:00%2B01:00")) == ["req-1", "req-0"]
    assert requests(api.get(f"{path(server)}?changes-since=2026-11-21&changes-before=2026-11-22")) == ["req-1"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("limit=-1", "limit"),
        ("limit=many", "limit"),
        ("changes-since=yesterday", "changes-since. Value: 'yesterday'. It must be a time of ISO 8601."),
        ("changes-before=2026-02-30T00:00:00Z", "changes-before"),
        ("changes-since=0001-01-01T00:00:00%2B23:00", "changes-since"),
        ("changes-since=2026-11-22&changes-before=2026-11-21", "less than or equal to changes-before."),
        ("marker=req-of-another", "marker [req-of-another] not found"),
        ("colour=red", 'Unknown argument: "colour"'),
    ],
)
def test_invalid_query_is_refused(api: Caller, server: Server, query: str, words: str) -> None:
    make_operation(make_server("other"), request_id="req-of-another")
    answer = api.get(f"{path(server)}?{query}")
    assert answer.status_code == 400
    assert words in fault(answer)


def test_unknown_instance_action_and_servers_of_other_projects_return_404(
    api: Caller, member: Caller, server: Server
) -> None:
    other = make_server("other", project_id="bank")
    make_operation(other, request_id="req-1")
    assert fault(api.get(path(server, "req-1"))) == "Action req-1 not found"
    assert api.get(f"/servers/{UNKNOWN}/os-instance-actions").status_code == 404
    assert "field/attribute server_uuid" in fault(api.get("/servers/nix/os-instance-actions"))
    assert member.get(path(other)).status_code == member.get(path(other, "req-1")).status_code == 404
    assert member.get(path(server)).status_code == 200


def test_instance_actions_of_a_deleted_server_remain_visible(api: Caller, member: Caller, server: Server) -> None:
    make_operation(server, "delete", "Success", request_id="req-1")
    Server.objects.all().soft_delete()
    assert requests(api.get(path(server))) == requests(member.get(path(server))) == ["req-1"]
    assert api.get(path(server, "req-1")).status_code == 200


def test_instance_actions_are_not_acceptable_before_microversion_1_8(cloud_admin: User, server: Server) -> None:
    assert Caller(cloud_admin, "1.7").get(path(server)).status_code == 406


def test_query_count_does_not_depend_on_the_number_of_actions_and_events(
    api: Caller, server: Server, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        make_operation(server, "stop", "Success", request_id=f"req-{number}")
    make_operation(server, "stop", *["Error"] * 30, request_id="req-long")
    api.get(path(server))  # The query for the user.
    for query in ("?limit=2", ""):
        with django_assert_num_queries(2):
            api.get(f"{path(server)}{query}")
    for request in ("req-0", "req-long"):
        with django_assert_num_queries(3):
            api.get(path(server, request))


def test_events_of_an_action_are_paginated_with_details_from_1_9_on(api: Caller, reader: User, server: Server) -> None:
    done = make_operation(server, "stop", "Success", "Skipped", "Error").action
    first = api.get(f"/actions/{done.uuid}/events?limit=2").json()
    assert [event["result"] for event in first["events"]] == ["Error", "Skipped"]
    assert [event["details"] for event in first["events"]] == ["It was Error.", None]
    assert [event["host"] for event in first["events"]] == ["worker-1", "worker-1"]
    [last] = api.get(first["next"].removeprefix("http://testserver/v1")).json()["events"]
    assert last["result"] == "Success"
    assert "details" in Caller(reader, "1.9").get(f"/actions/{done.uuid}/events").json()["events"][0]
    assert "details" not in Caller(api_user(api), "1.8").get(f"/actions/{done.uuid}/events").json()["events"][0]


def api_user(api: Caller) -> User:
    return User.objects.get(username="alice")


def test_action_events_are_refused_without_permission_before_1_8_and_for_invalid_markers(
    api: Caller, stranger: User, server: Server
) -> None:
    done = make_operation(server).action
    url = f"/actions/{done.uuid}/events"
    assert Caller(stranger, "1.9").get(url).status_code == 403
    assert Caller(api_user(api), "1.7").get(url).status_code == 406
    assert api.get(f"{url}?marker=x").status_code == api.get(f"{url}?limit=0").status_code == 400
    foreign = make_operation(server, "stop", "Success", request_id="req-2").action.events.first().pk
    assert fault(api.get(f"{url}?marker={foreign}")) == f"marker [{foreign}] not found"
    assert api.get(f"/actions/{UNKNOWN}/events").status_code == 404
