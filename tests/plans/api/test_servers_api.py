"""Servers through the API: permissions, requested operations and their results."""

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries, Settings

from actions.graph.proposals import ProposedAction
from actions.models import Action
from cluster.models import Server
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.api import Caller, fault
from tests.builders import make_flavor, make_node, make_server
from tests.plans.inline import run_waiting
from watcher_site.models import ProjectMember

pytestmark = pytest.mark.django_db
FAULT = {"code": 500, "message": "No valid host was found.", "created": "2026-11-20T22:00:00Z", "details": None}


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_flavor("small", flavor_id="f1", vcpus=2, memory=2048, disk=20)
    return Caller(cloud_admin, "1.10")


def member(*projects: str, name: str = "ines", version: str = "1.10") -> Caller:
    user = User.objects.create_user(name)
    for project in projects:
        ProjectMember.objects.create(user=user, project_id=project)
    return Caller(user, version)


def wanted(**attributes: Any) -> dict[str, Any]:
    return {"server": {"name": "web", "flavorRef": "small", **attributes}}


def pending(**columns: Any) -> Server:
    return make_server(**{"node": None, "state": "pending", "fault": FAULT, **columns})


def again(server: Server) -> Server:
    return Server.objects.get(pk=server.pk)


def path(server: Server) -> str:
    return f"/servers/{server.uuid}"


# Creation


def test_requested_server_is_built_by_an_action(api: Caller) -> None:
    node = make_node("here", zone="az1")
    answer = api.post(
        "/servers", wanted(imageRef="cirros", metadata={"role": "web"}, availability_zone="az1", project_id="p1")
    )
    made = answer.json()
    assert (answer.status_code, answer["Location"]) == (202, f"http://testserver/v1/servers/{made['id']}")
    assert (made["status"], made["OS-EXT-STS:vm_state"]) == ("BUILD", "building")
    run_waiting()
    shown = api.get(f"/servers/{made['id']}").json()
    assert (shown["status"], shown["OS-EXT-SRV-ATTR:host"], shown["image"]) == ("ACTIVE", node.hostname, "cirros")
    assert shown["flavor"] == {"original_name": "small", "vcpus": 2, "ram": 2048, "disk": 20}
    assert (shown["tenant_id"], shown["user_id"], shown["metadata"]) == ("p1", "alice", {"role": "web"})
    assert Action.objects.get().action_type == "build"


def test_server_without_a_host_is_in_error_with_the_fault(api: Caller) -> None:
    made = api.post("/servers", wanted()).json()
    run_waiting()
    shown = api.get(f"/servers/{made['id']}").json()
    assert (shown["status"], shown["fault"]["message"]) == (
        "ERROR",
        "No valid host was found. There are not enough hosts available.",
    )


def test_server_without_a_host_is_pending_if_configured(api: Caller, settings: Settings) -> None:
    settings.USE_PENDING_STATE = True
    made = api.post("/servers", wanted()).json()
    run_waiting()
    shown = api.get(f"/servers/{made['id']}").json()
    assert (shown["status"], shown["OS-EXT-STS:vm_state"], shown["fault"]) == ("PENDING", "pending", None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "server. Value: 'None'. Mandatory field missing."),
        ({"server": []}, "server: [] is not of type 'object'"),
        ({"server": {}}, "server: 'name' is a required property"),
        (wanted(name="  "), "server: name"),
        (wanted(name=7), "server: name: 7 is not of type 'string'"),
        (wanted(flavorRef="huge"), "server: flavorRef: the cloud has no flavor huge."),
        (wanted(availability_zone="mars"), "server: availability_zone: the cloud has no availability zone mars."),
        (wanted(metadata={"a": 1}), "server: metadata.a: 1 is not of type 'string'"),
        (wanted(metadata={"": "x"}), "server: metadata"),
        (wanted(networks="auto"), "server: Additional properties are not allowed ('networks' was unexpected)"),
        (wanted(name="a\0b"), "server"),
        ([], "server"),
        ({"server": {}, "other": 1}, "Unknown attribute for argument server: other"),
    ],
)
def test_invalid_server_request_is_refused(api: Caller, body: Any, words: str) -> None:
    answer = api.post("/servers", body)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not Server.objects.exists()
    assert not Action.objects.exists()


# Permissions


def test_members_see_servers_of_their_projects_without_the_host(api: Caller) -> None:
    own = make_server("own", node=make_node("secret"), project_id="p1")
    other = make_server("other", project_id="p2")
    ines = member("p1")
    [shown] = ines.get("/servers/detail").json()["servers"]
    assert (shown["name"], "OS-EXT-SRV-ATTR:host" in shown) == ("own", False)
    assert ines.get(path(own)).status_code == 200
    assert ines.get(path(other)).status_code == 404
    assert ines.get("/servers?host=secret").json()["servers"] == []


def test_servers_are_refused_without_permissions_and_projects(api: Caller) -> None:
    server = make_server()
    nobody = member()
    assert nobody.get("/servers").status_code == 403
    assert nobody.get(path(server)).status_code == 404


def test_readers_see_all_servers_but_cannot_change_them(reader: User) -> None:
    server = make_server(project_id="p1", node=make_node())
    caller = Caller(reader, "1.10")
    assert len(caller.get("/servers").json()["servers"]) == 1
    assert caller.delete(path(server)).status_code == 403
    assert caller.post(f"{path(server)}/action", {"rebuild": {}}).status_code == 403
    assert caller.post("/servers", wanted()).status_code == 403


def test_server_of_a_member_defaults_to_their_only_project(api: Caller) -> None:
    assert member("p1").post("/servers", wanted()).json()["tenant_id"] == "p1"


@pytest.mark.parametrize("project", [None, "p3"])
def test_member_of_several_projects_must_name_one_of_them(api: Caller, project: str | None) -> None:
    body = wanted(**({"project_id": project} if project else {}))
    answer = member("p1", "p2").post("/servers", body)
    assert (answer.status_code, fault(answer)) == (400, "server: project_id: must be one of your projects: p1, p2.")


@pytest.mark.parametrize("project", [["p1"], {"p1": 1}, 7, True, None])
@pytest.mark.parametrize("rights", ["member", "administrator"])
def test_project_id_must_be_a_text(api: Caller, rights: str, project: Any) -> None:
    caller = api if rights == "administrator" else member("p1")
    answer = caller.post("/servers", wanted(project_id=project))
    assert (answer.status_code, "server: project_id: " in fault(answer)) == (400, True), fault(answer)
    assert not Server.objects.exists()


def test_members_delete_and_rebuild_but_cannot_reset_their_servers(api: Caller) -> None:
    server = make_server(project_id="p1", node=make_node())
    ines = member("p1")
    assert ines.post(f"{path(server)}/action", {"rebuild": {}}).status_code == 202
    assert ines.post(f"{path(server)}/action", {"os-resetState": {"state": "error"}}).status_code == 403
    assert ines.delete(path(server)).status_code == 204


# Status, and PENDING before microversion 1.10


@pytest.mark.parametrize("version", ["1.8", "1.9"])
def test_pending_server_has_status_error_before_microversion_1_10(cloud_admin: User, version: str) -> None:
    server, old = pending(), Caller(cloud_admin, version)
    for shown in (old.get(path(server)).json(), old.get("/servers/detail").json()["servers"][0]):
        assert (shown["status"], shown["OS-EXT-STS:vm_state"], shown["fault"]) == ("ERROR", "error", FAULT)


def test_error_filter_includes_pending_servers_before_microversion_1_10(cloud_admin: User) -> None:
    pending()
    make_server("broken", state="error")
    make_server("fine")
    old, new = Caller(cloud_admin, "1.9"), Caller(cloud_admin, "1.10")

    def number(caller: Caller, query: str) -> int:
        return len(caller.get(f"/servers?{query}").json()["servers"])

    assert [number(old, "status=error"), number(old, "vm_state=error")] == [2, 2]
    assert [number(new, "status=ERROR"), number(new, "status=PENDING"), number(new, "vm_state=pending")] == [1, 1, 1]
    assert number(new, "status=PENDING&status=ERROR") == 2
    assert old.get("/servers?status=PENDING").status_code == 400
    assert old.get("/servers?vm_state=pending").status_code == 400


def test_servers_are_not_acceptable_before_microversion_1_8(cloud_admin: User) -> None:
    assert Caller(cloud_admin, "1.7").get("/servers").status_code == 406


@pytest.mark.parametrize(
    ("state", "task_state", "status"),
    [
        ("active", None, "ACTIVE"),
        ("active", "migrating", "MIGRATING"),
        ("active", "rebooting", "REBOOT"),
        ("active", "powering-off", "ACTIVE"),
        ("stopped", None, "SHUTOFF"),
        ("stopped", "resizing", "RESIZE"),
        ("error", "rebuilding", "REBUILD"),
        ("resized", None, "VERIFY_RESIZE"),
        ("pending", None, "PENDING"),
    ],
)
def test_server_status_is_derived_from_state_and_task_state(
    api: Caller, state: str, task_state: str | None, status: str
) -> None:
    server = make_server(state=state, task_state=task_state)
    assert api.get(path(server)).json()["status"] == status
    assert len(api.get(f"/servers?status={status}").json()["servers"]) == 1


def test_deleted_server_has_status_deleted(api: Caller) -> None:
    server = pending()
    assert api.delete(path(server)).status_code == 204
    shown = api.get(path(server), **{"X-Show-Deleted": "true"}).json()
    assert (shown["status"], shown["fault"]) == ("DELETED", FAULT)
    assert len(api.get("/servers?status=DELETED", **{"X-Show-Deleted": "true"}).json()["servers"]) == 1


# Deletion


def test_pending_server_is_deleted_immediately_without_an_action(api: Caller) -> None:
    server = pending(project_id="p1")
    assert member("p1").delete(path(server)).status_code == 204
    assert api.get(path(server)).status_code == 404
    assert not Action.objects.exists()


def test_active_server_is_deleted_by_an_action(api: Caller) -> None:
    server = make_server(node=make_node())
    assert api.delete(path(server)).status_code == 204
    run_waiting()
    assert api.get(path(server)).status_code == 404


def plan_of(server: Server, kind: str, state: str = "PENDING", **parameters: Any) -> ActionPlan:
    """Make a plan of one action on a server."""
    action = ProposedAction(kind, {"resource_id": str(server.uuid), **parameters})
    made = propose([action])
    ActionPlan.objects.filter(pk=made.pk).update(state=state)
    return made


def test_repeated_deletion_creates_one_action(api: Caller) -> None:
    server = make_server(node=make_node())
    assert [api.delete(path(server)).status_code for _ in range(2)] == [204, 204]
    assert Action.objects.count() == 1


@pytest.mark.parametrize(
    ("state", "parameters"), [("CANCELLING", {}), ("RECOMMENDED", {}), ("ONGOING", {"needed_for": [str(UUID(int=1))]})]
)
def test_deletion_is_accepted_while_an_earlier_one_may_not_be_executed(
    api: Caller, state: str, parameters: dict[str, Any]
) -> None:
    server = make_server(node=make_node())
    plan_of(server, "delete_server", state, **parameters)
    assert api.delete(path(server)).status_code == 204
    assert Action.objects.count() == 2


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_deletion_and_reset_are_accepted_while_a_rebuild_is_pending_or_running(api: Caller, state: str) -> None:
    server = make_server(node=make_node())
    plan_of(server, "rebuild", state)
    assert api.post(f"{path(server)}/action", {"os-resetState": {"state": "error"}}).status_code == 202
    assert api.delete(path(server)).status_code == 204
    assert Action.objects.count() == 3


# Actions


def test_rebuild_is_refused_while_a_rebuild_is_pending(api: Caller) -> None:
    server = make_server(node=make_node())
    assert api.post(f"{path(server)}/action", {"rebuild": {}}).status_code == 202
    answer = api.post(f"{path(server)}/action", {"rebuild": {}})
    first = Action.objects.get()
    assert (answer.status_code, str(first.uuid) in fault(answer)) == (409, True), fault(answer)
    run_waiting()
    assert api.post(f"{path(server)}/action", {"rebuild": {}}).status_code == 202


@pytest.mark.parametrize("kind", ["build", "rebuild", "delete_server"])
def test_rebuild_is_refused_while_a_build_rebuild_or_deletion_runs(api: Caller, kind: str) -> None:
    server = make_server(node=make_node())
    plan_of(server, kind, "ONGOING")
    assert api.post(f"{path(server)}/action", {"rebuild": {}}).status_code == 409


def test_recommended_plan_does_not_block_a_rebuild(api: Caller) -> None:
    server = make_server(node=make_node())
    plan_of(server, "rebuild", "RECOMMENDED")
    assert api.post(f"{path(server)}/action", {"rebuild": {}}).status_code == 202


def test_rebuild_builds_a_pending_server(api: Caller) -> None:
    server = pending()
    make_node()
    answer = api.post(f"{path(server)}/action", {"rebuild": {"description": None, "imageRef": "cirros"}})
    assert (answer.status_code, answer.json()["server"]["id"]) == (202, str(server.uuid))
    run_waiting()
    assert again(server).state == "active"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"task_state": "migrating"}, "while it is in task_state migrating"),
        ({"state": "paused"}, "while it is in vm_state paused"),
    ],
)
def test_rebuild_is_refused_in_the_current_state_of_the_server(
    api: Caller, columns: dict[str, str], words: str
) -> None:
    server = make_server(node=make_node(), **columns)
    answer = api.post(f"{path(server)}/action", {"rebuild": {}})
    assert (answer.status_code, fault(answer)) == (409, f"Cannot 'rebuild' instance {server.uuid} {words}")
    assert not Action.objects.exists()


def test_server_state_is_reset_by_an_action(api: Caller) -> None:
    server = pending()
    answer = api.post(f"{path(server)}/action", {"os-resetState": {"state": "error"}})
    assert (answer.status_code, answer.content) == (202, b"")
    run_waiting()
    assert again(server).state == "error"


def test_server_without_a_host_cannot_be_reset_to_active(api: Caller) -> None:
    server = pending()
    answer = api.post(f"{path(server)}/action", {"os-resetState": {"state": "active"}})
    assert (answer.status_code, again(server).state) == (409, "pending")


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"rebuild": {}, "os-resetState": {"state": "error"}},
        {"reboot": {}},
        {"rebuild": []},
        {"rebuild": {"imageRef": 7}},
        {"rebuild": {"name": "x"}},
        {"os-resetState": {}},
        {"os-resetState": {"state": "paused"}},
        {"os-resetState": {"state": "error", "other": 1}},
    ],
)
def test_invalid_action_is_refused(api: Caller, body: Any) -> None:
    answer = api.post(f"{path(make_server(node=make_node()))}/action", body)
    assert answer.status_code == 400, fault(answer)
    assert not Action.objects.exists()


def test_unknown_server_returns_404(api: Caller) -> None:
    unknown = "/servers/4f1b1c8e-5d67-4d3a-9a53-1d0d9f2f8a11"
    assert api.get(unknown).status_code == 404
    assert api.delete(unknown).status_code == 404
    assert api.post(f"{unknown}/action", {"rebuild": {}}).status_code == 404


# Lists


@pytest.mark.parametrize("number", [10, 1000])
def test_server_list_query_count_does_not_depend_on_the_number_of_servers(
    api: Caller, number: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    node = make_node()
    Server.objects.bulk_create(
        Server(name=f"s{count}", node=node, vcpus=1, memory=1, disk=1, fault=FAULT, state="error")
        for count in range(number)
    )
    with django_assert_num_queries(2):
        assert len(api.get(f"/servers/detail?limit={number}").json()["servers"]) == number


def test_server_list_is_filtered(api: Caller) -> None:
    make_server("one", project_id="p1", flavor="small", node=make_node("here"))
    make_server("two", project_id="p2", flavor="large", node=make_node("there"))
    for query in ("name=one", "project_id=p1", "flavor=small", "host=here"):
        assert [one["name"] for one in api.get(f"/servers?{query}").json()["servers"]] == ["one"], query


def test_server_list_is_paginated(api: Caller) -> None:
    for name in "cab":
        make_server(name)
    first = api.get("/servers?sort_key=name&limit=2").json()
    assert [one["name"] for one in first["servers"]] == ["a", "b"]
    further = api.get(first["next"].partition("/v1")[2]).json()["servers"]
    assert [one["name"] for one in further] == ["c"]
