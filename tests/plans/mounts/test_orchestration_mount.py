"""The orchestration mount in the format of Heat: paths, responses, errors and permissions."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from rest_framework.test import APIClient

from actions.types.locking import take_lock
from cluster.models import Stack, StackResource
from plans.operations.stacks import update_stack
from tests.actions.types.stacks.builders import template
from tests.builders import make_resource
from tests.plans.api.test_marks_api import BAD_BODIES
from tests.plans.operations.test_marking import make_action, make_group, state
from watcher_site.models import HistoryEntry, ProjectMember

pytestmark = pytest.mark.django_db
MARK = {"mark_unhealthy": True}


@pytest.fixture
def stack() -> Stack:
    return Stack.objects.create(name="shop", project_id="sales")


@pytest.fixture
def web(stack: Stack) -> StackResource:
    return make_resource(stack, "web")


def client(user: User) -> APIClient:
    made = APIClient()
    made.force_authenticate(user)
    return made


@pytest.fixture
def heat(cloud_admin: User) -> APIClient:
    return client(cloud_admin)


def path(stack: Stack, rest: str = "") -> str:
    return f"/orchestration/v1/sales/stacks/{stack.name}/{stack.uuid}{rest}"


def refused(answer: Any, code: int, kind: str, title: str) -> str:
    """Check a refusal in the format of Heat, and return its message."""
    found = answer.json()
    message = found["error"]["message"]
    assert (answer.status_code, found) == (
        code,
        {
            "code": code,
            "title": title,
            "explanation": message,
            "error": {"type": kind, "message": message, "traceback": None},
        },
    )
    return str(message)


def patch(heat: APIClient, stack: Stack, resource: str, body: Any = MARK) -> HttpResponse:
    found: HttpResponse = heat.patch(path(stack, f"/resources/{resource}"), body, format="json")
    return found


def test_accepted_mark_returns_null(heat: APIClient, web: StackResource) -> None:
    answer = patch(heat, web.stack, "web", {"mark_unhealthy": "TRUE", "resource_status_reason": ""})
    assert (answer.status_code, answer.content, answer["Content-Type"]) == (200, b"null", "application/json")
    assert state(web)[0] == "CHECK_FAILED"


@pytest.mark.parametrize(("body", "words"), BAD_BODIES, ids=lambda value: str(value)[:50])
def test_invalid_body_is_refused_in_the_format_of_heat(
    heat: APIClient, web: StackResource, body: Any, words: str
) -> None:
    assert refused(patch(heat, web.stack, "web", body), 400, "HTTPBadRequest", "Bad Request") == words


def test_invalid_json_is_refused(heat: APIClient, web: StackResource) -> None:
    answer = heat.patch(path(web.stack, "/resources/web"), "{", content_type="application/json")
    refused(answer, 400, "HTTPBadRequest", "Bad Request")


def test_mark_during_an_operation_is_refused_as_action_in_progress(heat: APIClient, web: StackResource) -> None:
    take_lock(web.stack, make_action("delete_stack"))
    answer = refused(patch(heat, web.stack, "web"), 409, "ActionInProgress", "Conflict")
    assert answer == "Stack shop already has an action (DELETE) in progress."


def test_history_records_refused_marks(heat: APIClient, reader: User, web: StackResource) -> None:
    take_lock(web.stack, make_action("delete_stack"))
    for person in (heat, client(reader)):
        patch(person, web.stack, "web")
    patch(heat, web.stack, "web", {"mark_unhealthy": False})
    entries = HistoryEntry.objects.filter(outcome="refused").order_by("pk")
    assert set(entries.values_list("object_uuid", "within")) == {(web.uuid, web.stack.uuid)}
    assert [entry.deed for entry in entries] == ["resource.mark", "resource.mark", "resource.clear"]


def test_history_records_refused_access_to_a_project(stranger: User, web: StackResource) -> None:
    assert client(stranger).get(path(web.stack)).status_code == 403
    assert list(HistoryEntry.objects.values_list("user", "deed", "outcome")) == [("sam", "stack.view", "refused")]


def test_missing_resource_or_stack_returns_404_in_the_format_of_heat(
    heat: APIClient, web: StackResource, stack: Stack
) -> None:
    answer = refused(patch(heat, stack, "nope"), 404, "EntityNotFound", "Not Found")
    assert answer == "The Resource (nope) could not be found in Stack shop."
    answer = heat.get(path(stack).replace("shop", "other"))
    refused(answer, 404, "EntityNotFound", "Not Found")


@pytest.mark.parametrize("part", ["events", "environment", "outputs/one", "snapshots", "files", "export"])
def test_unsupported_part_of_a_stack_is_refused_by_name(
    heat: APIClient, web: StackResource, stack: Stack, part: str
) -> None:
    words = f"Stack shop: {part.partition('/')[0]} of stacks are not offered here."
    for address in (f"/orchestration/v1/sales/stacks/shop/{part}", f"{path(stack)}/{part}"):
        assert refused(heat.get(address), 404, "EntityNotFound", "Not Found") == words


def test_ambiguous_physical_id_is_refused(heat: APIClient, stack: Stack) -> None:
    for name in ("a", "b"):
        make_resource(stack, name, physical_id="same")
    answer = refused(patch(heat, stack, "same"), 400, "HTTPBadRequest", "Bad Request")
    assert answer == "Multiple resources were found with the physical ID (same)."


def test_stack_name_or_id_redirects_to_the_full_path(heat: APIClient, stack: Stack) -> None:
    for called in (stack.name, stack.uuid):
        answer = heat.get(f"/orchestration/v1/sales/stacks/{called}/resources?nested_depth=2")
        assert (answer.status_code, answer["Location"]) == (
            302,
            f"http://testserver{path(stack, '/resources?nested_depth=2')}",
        )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("foo=1", "Invalid parameters foo"),
        ("limit=x", "limit"),
        ("marker=x", "marker"),
        ("sort_keys=x", "Invalid sort key: x"),
        ("sort_dir=x", "Unknown sort direction"),
        ("show_nested=maybe", "Unrecognized value"),
    ],
)
def test_list_refuses_unknown_arguments(heat: APIClient, query: str, words: str) -> None:
    answer = heat.get(f"/orchestration/v1/sales/stacks?{query}")
    assert words in refused(answer, 400, "HTTPBadRequest", "Bad Request")


def test_list_is_paginated_and_returns_the_count_on_request(heat: APIClient, stack: Stack) -> None:
    for name in ("a", "b"):
        Stack.objects.create(name=name, project_id="sales")
    first = heat.get("/orchestration/v1/sales/stacks?limit=2&sort_keys=name&with_count=True").json()
    assert ([one["stack_name"] for one in first["stacks"]], first["count"]) == (["a", "b"], 3)
    marker = first["stacks"][-1]["id"]
    rest = heat.get(f"/orchestration/v1/sales/stacks?sort_keys=name&marker={marker}").json()
    assert [one["stack_name"] for one in rest["stacks"]] == ["shop"]


@pytest.mark.parametrize("number", [1, 12])
def test_list_query_count_does_not_depend_on_the_number_of_resources(
    heat: APIClient, stack: Stack, number: int, django_assert_num_queries: Any
) -> None:
    for name in range(number):
        make_group(stack, f"group-{name}")
    with django_assert_num_queries(5):
        found = heat.get(path(stack, "/resources?nested_depth=3")).json()["resources"]
    assert len(found) == 2 * number
    with django_assert_num_queries(2):
        assert len(heat.get("/orchestration/v1/sales/stacks?show_nested=true").json()["stacks"]) == number + 1


def test_stack_status_is_in_progress_as_soon_as_an_operation_is_accepted(heat: APIClient, stack: Stack) -> None:
    Stack.objects.update(template=template())
    update_stack(stack)
    shown = heat.get(path(stack)).json()["stack"]
    assert (shown["stack_status"], shown["stack_status_reason"]) == ("UPDATE_IN_PROGRESS", "UPDATE started")
    for query, found in (("status=IN_PROGRESS", 1), ("action=UPDATE", 1), ("status=COMPLETE", 0)):
        assert len(heat.get(f"/orchestration/v1/sales/stacks?{query}").json()["stacks"]) == found


def test_members_access_only_their_project_and_readers_cannot_mark(
    reader: User, stranger: User, web: StackResource
) -> None:
    ProjectMember.objects.create(user=stranger, project_id="sales")
    assert patch(client(stranger), web.stack, "web").status_code == 200
    assert client(reader).get(path(web.stack)).status_code == 200
    refused(patch(client(reader), web.stack, "web"), 403, "HTTPForbidden", "Forbidden")
    refused(client(stranger).get("/orchestration/v1/other/stacks"), 403, "HTTPForbidden", "Forbidden")
    Stack.objects.create(name="foreign", project_id="other")
    listed = client(stranger).get("/orchestration/v1/sales/stacks?global_tenant=true").json()["stacks"]
    assert [one["stack_name"] for one in listed] == ["shop"]


def test_mark_requires_authentication(web: StackResource) -> None:
    assert patch(APIClient(), web.stack, "web").status_code == 401


def test_reader_cannot_mark_a_stack_without_a_project(reader: User) -> None:
    ProjectMember.objects.create(user=reader, project_id="sales")
    web = make_resource(Stack.objects.create(name="common"), "web")
    assert client(reader).get(path(web.stack)).status_code == 200
    assert patch(client(reader), web.stack, "web").status_code == 404
    assert state(web)[0] == "INIT_COMPLETE"


def test_version_list_is_public_and_stacks_require_a_token(stack: Stack) -> None:
    assert APIClient().get("/orchestration/v1/").json()["versions"][0]["id"] == "v1.0"
    assert APIClient().get(path(stack)).status_code == 401
