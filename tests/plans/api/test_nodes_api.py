"""Nodes through the API: lists, details, and operations, each executed by an action."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse

from actions.models import Action
from cluster.models import Node, Profile, Server
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import make_member, make_node, make_profile, make_server
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db

WEB = {"name": "web-1", "profile": "web", "role": "front", "metadata": {"team": "shop"}}


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_node()
    make_profile("web")
    return Caller(cloud_admin, "1.12")


def action_of(answer: HttpResponse) -> Action:
    """Check the response to an operation, and return its action."""
    assert answer.status_code == 202, fault(answer)
    found = answer.json()
    assert answer["Location"] == f"http://testserver/v1/actions/{found['action']}"
    action = Action.objects.select_related("action_plan").get(uuid=found["action"])
    assert (str(action.action_plan.uuid), action.target) == (found["action_plan"], found["node"])
    return action


def created(api: Caller) -> str:
    """Create a node, and return its path."""
    answer = api.post("/nodes", WEB)
    run_waiting()
    return f"/nodes/{answer.json()['node']}"


# Operations


def test_node_is_created_by_an_action_that_is_started_immediately(api: Caller) -> None:
    action = action_of(api.post("/nodes", WEB))
    assert (action.action_type, action.action_plan.state) == ("NODE_CREATE", "PENDING")
    shown = api.get(f"/nodes/{action.target}").json()
    assert (shown["name"], shown["profile_name"], shown["role"], shown["metadata"]) == (
        "web-1",
        "web",
        "front",
        {"team": "shop"},
    )
    assert (shown["status"], shown["physical_id"]) == ("INIT", None)
    run_waiting()
    shown = api.get(f"/nodes/{action.target}").json()
    assert (shown["status"], shown["physical_id"]) == ("ACTIVE", str(Server.objects.get().uuid))
    assert api.get(f"/actions/{action.uuid}").json()["status"] == "SUCCEEDED"


def test_node_is_checked_by_an_action(api: Caller) -> None:
    path = created(api)
    Server.objects.soft_delete()
    assert action_of(api.post(f"{path}/check")).action_type == "NODE_CHECK"
    run_waiting()
    shown = api.get(path).json()
    assert (shown["status"], "not found" in shown["status_reason"]) == ("ERROR", True)


def test_node_is_deleted_by_an_action(api: Caller) -> None:
    path = created(api)
    assert action_of(api.delete(path)).action_type == "NODE_DELETE"
    assert api.get(path).status_code == 200
    run_waiting()
    assert api.get(path).status_code == 404
    assert not Server.objects.present().exists()


def request_operation(api: Caller, operation: str, path: str) -> HttpResponse:
    if operation == "create":
        return api.post("/nodes", WEB | {"plan_only": True})
    return (
        api.delete(f"{path}?plan_only=true")
        if operation == "delete"
        else api.post(f"{path}/check", {"plan_only": True})
    )


@pytest.mark.parametrize("operation", ["create", "delete", "check"])
def test_plan_only_operation_waits_until_its_plan_is_started(api: Caller, operation: str) -> None:
    plan = action_of(request_operation(api, operation, created(api))).action_plan
    assert plan.state == "RECOMMENDED"
    api.post(f"/action_plans/{plan.uuid}/start")
    run_waiting()
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"


def test_failed_creation_sets_the_status_reason_of_the_node(api: Caller) -> None:
    Profile.objects.update(spec={"flavor": "gone"})
    path = created(api)
    shown = api.get(path).json()
    assert (shown["status"], shown["status_reason"]) == ("ERROR", "Flavor gone not found")
    assert Action.objects.get().state == "FAILED"


def test_node_whose_creation_was_cancelled_can_be_deleted(api: Caller) -> None:
    action = action_of(api.post("/nodes", WEB))
    api.post(f"/actions/{action.uuid}/signal", {"signal": "CANCEL"})
    run_waiting()
    path = f"/nodes/{action.target}"
    assert api.get(path).json()["status"] == "INIT"
    api.delete(path)
    run_waiting()
    assert api.get(path).status_code == 404


def test_plan_has_the_context_of_the_caller(api: Caller) -> None:
    assert action_of(api.post("/nodes", WEB)).action_plan.context


# Refusals


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": None}, "name. Value: 'None'. Mandatory field missing."),
        ({"name": ""}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"profile": None}, "profile. Value: 'None'. Mandatory field missing."),
        ({"profile": "nope"}, "profile: there is no profile nope."),
        ({"profile": str(uuid4())}, "profile: there is no profile"),
        ({"role": "x" * 256}, "role"),
        ({"metadata": []}, "metadata"),
        ({"plan_only": "perhaps"}, "plan_only"),
        ({"foo": 1}, "Unknown attribute for argument node: foo"),
        ({"status": "ACTIVE"}, "Cannot set read only field."),
        ({"physical_id": str(uuid4())}, "Cannot set read only field."),
    ],
)
def test_invalid_node_is_refused_and_not_created(api: Caller, changes: dict[str, Any], words: str) -> None:
    answer = api.post("/nodes", WEB | changes)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not Node.objects.exists()
    assert not ActionPlan.objects.exists()


@pytest.mark.parametrize("query", ["plan_only=perhaps", "plan_only=", "force=true"])
def test_invalid_deletion_is_refused(api: Caller, query: str) -> None:
    node = make_member()
    assert api.delete(f"/nodes/{node.uuid}?{query}").status_code == 400
    assert not ActionPlan.objects.exists()


@pytest.mark.parametrize("body", [{"plan_only": "perhaps"}, {"foo": 1}, [1], [], 0])
def test_invalid_check_is_refused(api: Caller, body: Any) -> None:
    node = make_member()
    assert api.post(f"/nodes/{node.uuid}/check", body).status_code == 400
    assert not ActionPlan.objects.exists()


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("DELETE", ""), ("POST", "/check")])
def test_unknown_node_returns_404(api: Caller, method: str, path: str) -> None:
    assert api.call(method, f"/nodes/{uuid4()}{path}").status_code == 404


def test_node_operation_is_refused_while_another_is_pending_or_running(api: Caller) -> None:
    first = action_of(api.post("/nodes", WEB))
    answer = api.delete(f"/nodes/{first.target}")
    words = (
        f"The NODE_DELETE action for target {first.target} conflicts with the following action(s): {first.uuid}. "
        f"Wait for action plan {first.action_plan.uuid} to end, or cancel it."
    )
    assert (answer.status_code, fault(answer)) == (409, words)
    assert Action.objects.count() == 1


def test_recommended_plan_does_not_block_node_operations(api: Caller) -> None:
    path = created(api)
    action_of(api.delete(f"{path}?plan_only=true"))
    action_of(api.post(f"{path}/check"))


def test_profile_of_a_node_cannot_be_deleted(api: Caller) -> None:
    path = created(api)
    answer = api.delete("/profiles/web")
    profile = Profile.objects.get()
    assert (answer.status_code, fault(answer)) == (409, f"Profile {profile.uuid} is in use by 1 node.")
    api.delete(path)
    run_waiting()
    assert api.delete("/profiles/web").status_code == 204


# Permissions


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/nodes"), ("DELETE", "/nodes/{}"), ("POST", "/nodes/{}/check")]
)
def test_readers_see_nodes_but_cannot_change_them(api: Caller, reader: User, method: str, path: str) -> None:
    node = make_member()
    reading = Caller(reader, "1.12")
    assert reading.get(f"/nodes/{node.uuid}").status_code == 200
    body = WEB if path == "/nodes" else None
    assert reading.call(method, path.format(node.uuid), body).status_code == 403
    assert not ActionPlan.objects.exists()


@pytest.mark.parametrize("operation", ["create", "delete", "check"])
def test_node_operation_without_the_start_permission_requires_plan_only(
    api: Caller, stranger: User, operation: str
) -> None:
    path = created(api)
    names = ["add_node", "delete_node", "check_node"]
    stranger.user_permissions.set(Permission.objects.filter(codename__in=names))
    asking = Caller(User.objects.get(pk=stranger.pk), "1.12")
    at_once = {"create": ("POST", "/nodes", WEB), "delete": ("DELETE", path), "check": ("POST", f"{path}/check")}
    assert asking.call(*at_once[operation]).status_code == 403
    assert request_operation(asking, operation, path).status_code == 202


def test_nodes_are_refused_without_permissions(api: Caller, stranger: User) -> None:
    assert Caller(stranger, "1.12").get("/nodes").status_code == 403


# Lists


@pytest.mark.parametrize("path", ["/nodes", "/nodes/detail"])
def test_nodes_are_not_acceptable_before_microversion_1_12(cloud_admin: User, path: str) -> None:
    assert Caller(cloud_admin, "1.11").get(path).status_code == 406


def names(api: Caller, query: str) -> list[str]:
    return [row["name"] for row in api.get(f"/nodes?{query}").json()["nodes"]]


def test_node_list_is_sorted_and_paginated(api: Caller) -> None:
    for name in ("c", "a", "b"):
        make_member(name)
    first = api.get("/nodes?sort_key=name&limit=2").json()
    assert [row["name"] for row in first["nodes"]] == ["a", "b"]
    second = api.get(first["next"].removeprefix("http://testserver/v1")).json()
    assert [row["name"] for row in second["nodes"]] == ["c"]
    assert "metadata" not in first["nodes"][0]


def test_node_list_is_filtered(api: Caller) -> None:
    server = make_server()
    make_member("active", status="ACTIVE", server=server)
    make_member("broken", status="ERROR")
    make_member("other", profile=make_profile("other"))
    assert names(api, "status=ERROR") == ["broken"]
    assert names(api, "status=ERROR&status=ACTIVE") == ["active", "broken"]
    assert names(api, "name=active") == ["active"]
    assert names(api, "profile=other") == ["other"]
    assert names(api, f"profile={Profile.objects.get(name='web').uuid}&status=ACTIVE") == ["active"]


@pytest.mark.parametrize("query", ["status=FINE", "foo=1", "sort_key=role"])
def test_invalid_query_of_the_node_list_is_refused(api: Caller, query: str) -> None:
    assert api.get(f"/nodes?{query}").status_code == 400


@pytest.mark.parametrize("count", [1, 10])
def test_node_list_query_count_does_not_depend_on_the_number_of_nodes(
    api: Caller, count: int, django_assert_num_queries: Any
) -> None:
    for number in range(count):
        make_member(str(number))
    api.get("/goals")
    with django_assert_num_queries(1):
        assert len(api.get("/nodes/detail").json()["nodes"]) == count


def test_node_is_found_by_its_name_and_by_a_prefix_of_its_uuid(api: Caller) -> None:
    node = make_member("front-1", status="ACTIVE")
    for identifier in (str(node.uuid), "front-1", "FRONT-1", str(node.uuid)[:8]):
        assert api.get(f"/nodes/{identifier}").json()["uuid"] == str(node.uuid)
    assert api.post("/nodes/front-1/check").status_code == 202
    assert api.get("/nodes/nobody").status_code == 404


def test_ambiguous_node_name_is_refused(api: Caller) -> None:
    for _ in range(2):
        make_member("front-1")
    answer = api.get("/nodes/front-1")
    words = "Multiple results found matching the query criteria 'front-1'. Please be more specific."
    assert (answer.status_code, fault(answer)) == (400, words)


def test_nodes_are_sorted_by_several_keys(api: Caller) -> None:
    for name, status in (("b", "ERROR"), ("a", "ERROR"), ("c", "ACTIVE")):
        make_member(name, status=status)
    found = api.get("/nodes?sort=status:desc,name").json()["nodes"]
    assert [node["name"] for node in found] == ["a", "b", "c"]
