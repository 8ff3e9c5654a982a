"""Marks through the API: request bodies, permissions and responses."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from actions.types.locking import take_lock
from cluster.models import Server, Stack, StackResource
from cluster.models.stacks import MARKED, Verb
from tests.actions.types.stacks.builders import server as server_of_template
from tests.actions.types.stacks.builders import template
from tests.api import Caller, fault
from tests.builders import make_flavor, make_member, make_node, make_resource, make_server, make_stack
from tests.plans.inline import run_waiting
from tests.plans.operations.test_marking import make_action, state
from watcher_site.models import HistoryEntry, ProjectMember

pytestmark = pytest.mark.django_db
BAD_BODIES = [
    ({"mark_unhealthy": True, "foo": 1}, "Invalid keys in resource mark unhealthy {'foo'}"),
    ({"resource_status_reason": "x"}, "Missing mandatory (mark_unhealthy) key from mark unhealthy request"),
    ({}, "Missing mandatory (mark_unhealthy) key from mark unhealthy request"),
    (None, "Missing mandatory (mark_unhealthy) key from mark unhealthy request"),
    (
        {"mark_unhealthy": "yes"},
        'Unrecognized value "yes" for "mark_unhealthy", acceptable values are: true, false.',
    ),
    ({"mark_unhealthy": 1}, 'Unrecognized value "1" for "mark_unhealthy", acceptable values are: true, false.'),
    ({"mark_unhealthy": None}, 'Unrecognized value "null" for "mark_unhealthy", acceptable values are: true, false.'),
    ({"mark_unhealthy": True, "resource_status_reason": 7}, "resource_status_reason: must be a text."),
    ([], "An object with mark_unhealthy, and resource_status_reason if there is one, is expected."),
    ("true", "An object with mark_unhealthy, and resource_status_reason if there is one, is expected."),
]


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def server() -> Server:
    return make_server(node=make_node(), project_id="shop")


@pytest.fixture
def path(server: Server) -> str:
    return f"/servers/{server.uuid}"


@pytest.mark.parametrize(("body", "words"), BAD_BODIES, ids=lambda value: str(value)[:50])
def test_invalid_body_is_refused_with_its_message(api: Caller, path: str, body: Any, words: str) -> None:
    answer = api.patch(f"{path}/health", body)
    assert (answer.status_code, fault(answer)) == (400, words)
    assert Server.objects.get().unhealthy_reason is None


@pytest.mark.parametrize("value", [True, "true", "True", "TRUE"])
def test_mark_unhealthy_accepts_true_as_text_in_any_case(api: Caller, server: Server, path: str, value: Any) -> None:
    answer = api.patch(f"{path}/health", {"mark_unhealthy": value})
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "unhealthy": True,
            "reason": MARKED,
            "object_type": "server",
            "object_id": str(server.uuid),
            "object_name": "web-1",
        },
    )
    assert api.get(path).json()["unhealthy_reason"] == MARKED
    assert api.patch(f"{path}/health", {"mark_unhealthy": "FALSE"}).json()["unhealthy"] is False
    assert api.get(f"{path}/health").json()["reason"] is None


def test_marking_the_server_of_a_node_marks_the_node_with_the_reason(api: Caller, server: Server, path: str) -> None:
    node = make_member(status="ACTIVE", server=server)
    answer = api.patch(f"{path}/health", {"mark_unhealthy": True, "resource_status_reason": "slow"}).json()
    assert (answer["object_type"], answer["object_id"]) == ("node", str(node.uuid))
    shown = api.get(f"/nodes/{node.uuid}").json()
    assert (shown["status"], shown["unhealthy_reason"]) == ("ERROR", "slow")
    answer = api.patch(f"/nodes/{node.uuid}/health", {"mark_unhealthy": False})
    assert (answer.status_code, answer.json()["unhealthy"]) == (200, False)
    assert HistoryEntry.objects.filter(deed="node.clear", user="alice").exists()


def test_marking_is_refused_while_the_server_has_a_task_state(api: Caller, path: str) -> None:
    Server.objects.update(task_state="migrating")
    answer = api.patch(f"{path}/health", {"mark_unhealthy": True})
    assert (answer.status_code, "in task_state migrating" in fault(answer)) == (409, True)


def test_deleted_server_cannot_be_marked(api: Caller, path: str) -> None:
    Server.objects.soft_delete()
    assert api.patch(f"{path}/health", {"mark_unhealthy": True}).status_code == 404


def test_marks_are_not_acceptable_before_microversion_1_11(cloud_admin: User, path: str) -> None:
    before = Caller(cloud_admin, "1.10")
    assert before.patch(f"{path}/health", {"mark_unhealthy": True}).status_code == 406
    assert before.get(f"{path}/health").status_code == 406
    assert "unhealthy_reason" not in before.get(path).json()


def test_members_mark_servers_of_their_projects_and_readers_are_refused(
    reader: User, stranger: User, server: Server, path: str
) -> None:
    ProjectMember.objects.create(user=stranger, project_id="shop")
    body = {"mark_unhealthy": True}
    assert Caller(reader, "1.12").patch(f"{path}/health", body).status_code == 403
    assert Caller(reader, "1.12").get(f"{path}/health").status_code == 200
    assert Caller(stranger, "1.12").patch(f"{path}/health", body).status_code == 200
    node = make_member(status="ACTIVE")
    assert Caller(reader, "1.12").patch(f"/nodes/{node.uuid}/health", body).status_code == 403


# Stacks and their resources


@pytest.fixture
def stack() -> Stack:
    return make_stack(project_id="shop")


@pytest.fixture
def web(stack: Stack) -> StackResource:
    return make_resource(stack, physical_id="8f2c")


def at(stack: Stack, rest: str = "") -> str:
    return f"/stacks/{stack.name}/{stack.uuid}{rest}"


@pytest.mark.parametrize("called", ["web", "8f2c", "shop-web"])
def test_resource_is_marked_by_any_of_its_names(api: Caller, stack: Stack, web: StackResource, called: str) -> None:
    answer = api.patch(at(stack, f"/resources/{called}"), {"mark_unhealthy": True, "resource_status_reason": "slow"})
    assert answer.status_code == 200, fault(answer)
    shown = answer.json()
    assert (shown["id"], shown["resource_status"], shown["resource_status_reason"]) == (
        str(web.uuid),
        "CHECK_FAILED",
        "slow",
    )
    assert api.patch(at(stack, "/resources/web"), {"mark_unhealthy": "false"}).json()["resource_status"] == (
        "CHECK_COMPLETE"
    )


def test_marking_a_resource_that_is_being_deleted_changes_nothing(
    api: Caller, stack: Stack, web: StackResource
) -> None:
    web.begin(Verb.DELETE)
    web.save_state()
    answer = api.patch(at(stack, "/resources/web"), {"mark_unhealthy": True})
    assert (answer.status_code, answer.json()["resource_status"]) == (200, "DELETE_IN_PROGRESS")


def test_refused_mark_in_a_stack_has_the_message_of_heat_and_is_recorded(
    api: Caller, stack: Stack, web: StackResource
) -> None:
    def refused(rest: str, body: Any = None) -> tuple[int, str]:
        answer = api.patch(at(stack, rest), body or {"mark_unhealthy": True})
        return answer.status_code, fault(answer)

    assert refused("/resources/nope") == (404, "The Resource (nope) could not be found in Stack shop.")
    assert refused("/resources/web", {"foo": 1}) == (400, "Invalid keys in resource mark unhealthy {'foo'}")
    for name in ("a", "b"):
        make_resource(stack, name, physical_id="same")
    message = "Multiple resources were found with the physical ID (same)."
    assert refused("/resources/same") == (400, message)
    take_lock(stack, make_action("update_stack"))
    message = "Stack shop already has an action (UPDATE) in progress."
    assert refused("/resources/web") == refused("/health") == (409, message)
    noted = HistoryEntry.objects.filter(outcome="refused", message=message).order_by("pk")
    assert [(one.deed, one.object_uuid) for one in noted] == [("resource.mark", web.uuid), ("stack.mark", stack.uuid)]
    well = {"mark_unhealthy": False}
    assert refused("/resources/web", well) == refused("/health", well) == (409, message)
    assert [one.deed for one in noted.all()[2:]] == ["resource.clear", "stack.clear"]
    assert state(web)[0] == "INIT_COMPLETE"


def test_whole_stack_is_marked(api: Caller, stack: Stack) -> None:
    answer = api.patch(at(stack, "/health"), {"mark_unhealthy": True, "resource_status_reason": "all of it"}).json()
    assert (answer["object_type"], answer["unhealthy"], answer["reason"]) == ("stack", True, "all of it")
    assert api.get(at(stack)).json()["stack_status"] == "CHECK_FAILED"
    assert api.get(at(stack, "/health")).json() == answer


def test_members_mark_stacks_of_their_projects_and_readers_are_refused(
    reader: User, stranger: User, stack: Stack, web: StackResource
) -> None:
    body, paths = {"mark_unhealthy": True}, [at(stack, "/health"), at(stack, "/resources/web")]
    assert [Caller(reader, "1.11").patch(path, body).status_code for path in paths] == [403, 403]
    assert [Caller(stranger, "1.11").patch(path, body).status_code for path in paths] == [404, 404]
    ProjectMember.objects.create(user=stranger, project_id="shop")
    member = User.objects.get(pk=stranger.pk)
    assert [Caller(member, "1.11").patch(path, body).status_code for path in paths] == [200, 200]


def test_stack_update_replaces_only_marked_resources(api: Caller) -> None:
    make_node()
    make_flavor("small")
    body = {
        "name": "shop",
        "project_id": "shop",
        "template": template(web=server_of_template(), db=server_of_template()),
    }
    made = Stack.objects.get(uuid=api.post("/stacks", body).json()["stack"])
    run_waiting()
    before = dict(made.resources.values_list("name", "physical_id"))
    marked = Server.objects.get(uuid=before["web"])
    answer = api.patch(f"/servers/{marked.uuid}/health", {"mark_unhealthy": True, "resource_status_reason": "slow"})
    assert (answer.json()["object_type"], answer.json()["object_name"]) == ("resource", "web")
    api.put(at(made), {})
    run_waiting()
    after = dict(made.resources.values_list("name", "physical_id"))
    assert (after["db"] == before["db"], after["web"] == before["web"]) == (True, False)
    assert Server.objects.get(pk=marked.pk).deleted_at is not None
    assert api.get(at(made, "/resources/web")).json()["resource_status"].endswith("_COMPLETE")


def make_servers_of_each_kind(number: int) -> list[Server]:
    """Make four servers: marked itself, as a resource of a stack, as a node, and not marked."""
    node, stack = make_node(f"compute{number}"), make_stack(f"stack-{number}")
    kinds = ("alone", "web", "node", "well")
    alone, resource, member, well = (make_server(f"{kind}-{number}", node) for kind in kinds)
    Server.objects.filter(pk__in=[alone.pk, resource.pk]).update(unhealthy_reason="itself")
    make_resource(stack, physical_id=str(resource.uuid), status="CHECK_FAILED", status_reason="as resource")
    make_member(f"member-{number}", status="ERROR", server=member, unhealthy_reason="as node")
    make_resource(stack, "well", physical_id=str(well.uuid), status="CREATE_COMPLETE", status_reason="all is well")
    return [alone, resource, member, well]


def test_server_list_shows_the_same_unhealthy_reason_as_the_health_of_each_server(api: Caller) -> None:
    reasons = {
        str(one.uuid): api.get(f"/servers/{one.uuid}/health").json()["reason"] for one in make_servers_of_each_kind(1)
    }
    assert list(reasons.values()) == ["itself", "as resource", "as node", None]
    listed = api.get("/servers/detail").json()["servers"]
    assert {one["id"]: one["unhealthy_reason"] for one in listed} == reasons
    assert {server: api.get(f"/servers/{server}").json()["unhealthy_reason"] for server in reasons} == reasons


@pytest.mark.parametrize("number", [1, 10])
def test_server_list_query_count_with_marks_does_not_depend_on_the_number_of_servers(
    api: Caller, number: int, django_assert_num_queries: Any
) -> None:
    for one in range(number):
        make_servers_of_each_kind(one)
    api.get("/servers/detail")
    with django_assert_num_queries(3):
        assert len(api.get("/servers/detail").json()["servers"]) == 4 * number
