"""Stacks through the API: lists, details, and operations, each executed by an action."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from pytest_django import DjangoAssertNumQueries

from actions.models import Action
from cluster.models import Server, Stack, StackResource
from plans.models import ActionPlan
from tests.actions.types.stacks.builders import group, server, template, within
from tests.api import Caller, fault
from tests.builders import make_flavor, make_node, make_resource, make_stack
from tests.conftest import person
from tests.plans.inline import run_waiting
from watcher_site.accounts.projects import add_member
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db

WEB = {"name": "shop", "template": template(web=server(), database=server())}


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    make_node()
    make_flavor("small")
    return Caller(cloud_admin, "1.11")


@pytest.fixture
def member(db: None) -> Caller:
    """A member of the project acme without permissions."""
    user = person("mia")
    add_member("mia", "acme")
    return Caller(user, "1.11")


def path(stack: Stack) -> str:
    return f"/stacks/{stack.name}/{stack.uuid}"


def action_of(answer: HttpResponse) -> Action:
    """Check the response to an operation, and return its action."""
    assert answer.status_code == 202, fault(answer)
    found = answer.json()
    assert answer["Location"] == f"http://testserver/v1/actions/{found['action']}"
    action = Action.objects.select_related("action_plan").get(uuid=found["action"])
    assert (str(action.action_plan.uuid), action.target) == (found["action_plan"], found["stack"])
    return action


def done(answer: HttpResponse) -> Stack:
    """Run the requested operation, and return the stack."""
    action = action_of(answer)
    run_waiting()
    assert ActionPlan.objects.get(pk=action.action_plan.pk).state == "SUCCEEDED"
    return Stack.objects.get(uuid=action.target)


def names(answer: HttpResponse, field: str = "resource_name", collection: str = "resources") -> list[str]:
    assert answer.status_code == 200, fault(answer)
    return [row[field] for row in answer.json()[collection]]


# Operations


def test_stack_is_created_updated_and_deleted_by_actions(api: Caller) -> None:
    stack = done(api.post("/stacks", WEB | {"project_id": "acme"}))
    shown = api.get(path(stack)).json()
    expected = {
        "id": str(stack.uuid),
        "stack_name": "shop",
        "stack_status": "CREATE_COMPLETE",
        "stack_status_reason": "CREATE completed successfully",
        "description": "",
        "project": "acme",
        "stack_owner": "alice",
        "parent": None,
        "deletion_time": None,
        "links": [{"href": f"http://testserver/v1/stacks/shop/{stack.uuid}", "rel": "self"}],
    }
    assert {name: shown[name] for name in expected} == expected
    changed = template(web=server(depends_on=["cache"]), cache=server())
    assert done(api.put(path(stack), {"template": changed})).status == "UPDATE_COMPLETE"
    assert api.get(f"{path(stack)}/template").json() == changed
    assert names(api.get(f"{path(stack)}/resources?sort_key=resource_name")) == ["cache", "web"]
    assert api.delete(path(stack)).status_code == 202
    run_waiting()
    assert api.get(path(stack)).status_code == 404
    assert set(StackResource.objects.values_list("status", flat=True)) == {"DELETE_COMPLETE"}
    deleted = Stack.objects.get()
    assert (deleted.status, deleted.status_reason) == ("DELETE_COMPLETE", "DELETE completed successfully")
    assert not Server.objects.present().exists()
    assert [*HistoryEntry.objects.filter(object_uuid=stack.uuid).order_by("pk").values_list("deed", flat=True)] == [
        "stack.create",
        "stack.update",
        "stack.delete",
    ]


def status(api: Caller, stack: str) -> tuple[str, str]:
    shown = api.get(f"/stacks/{stack}").json()
    return shown["stack_status"], shown["stack_status_reason"]


def listed(api: Caller, wanted: str) -> list[str]:
    return names(api.get(f"/stacks?status={wanted}"), "stack_name", "stacks")


def test_stack_status_is_in_progress_as_soon_as_an_operation_is_accepted(api: Caller) -> None:
    api.post("/stacks", WEB)
    assert status(api, "shop") == ("CREATE_IN_PROGRESS", "CREATE started")
    run_waiting()
    stack = Stack.objects.get()
    api.put(path(stack), {"template": template(web=server())})
    assert status(api, "shop") == ("UPDATE_IN_PROGRESS", "UPDATE started")
    assert (listed(api, "UPDATE_IN_PROGRESS"), listed(api, "CREATE_COMPLETE")) == (["shop"], [])
    run_waiting()
    assert status(api, "shop")[0] == "UPDATE_COMPLETE"
    api.delete(path(stack))
    assert status(api, "shop") == ("DELETE_IN_PROGRESS", "DELETE started")


def test_stack_status_is_unchanged_after_a_pending_operation_is_cancelled(api: Caller) -> None:
    stack = done(api.post("/stacks", WEB))
    plan = action_of(api.put(path(stack), {})).action_plan
    plan.abandon("rosa")
    assert status(api, "shop")[0] == "CREATE_COMPLETE"


@pytest.mark.parametrize("columns", [{"opens_at": "2999-01-01T00:00:00Z"}, {"suspended_by": "rosa"}])
def test_stack_status_is_unchanged_while_the_plan_waits_for_its_window_or_is_suspended(
    api: Caller, columns: dict[str, str]
) -> None:
    stack = done(api.post("/stacks", WEB))
    plan = action_of(api.put(path(stack), {})).action_plan
    ActionPlan.objects.filter(pk=plan.pk).update(**columns)
    assert status(api, "shop")[0] == "CREATE_COMPLETE"


@pytest.mark.parametrize("verb", ["UPDATE", "DELETE"])
@pytest.mark.parametrize("marked", ["resources/web", "health"])
def test_marks_are_refused_from_the_acceptance_of_an_operation_on(api: Caller, verb: str, marked: str) -> None:
    stack = done(api.post("/stacks", WEB))
    accepted = api.put(path(stack), {}) if verb == "UPDATE" else api.delete(path(stack))
    assert accepted.status_code == 202
    answer = api.patch(f"{path(stack)}/{marked}", {"mark_unhealthy": True})
    words = f"Stack shop already has an action ({verb}) in progress."
    assert (answer.status_code, fault(answer)) == (409, words)


def test_plan_only_creation_proposes_all_actions_and_waits(api: Caller) -> None:
    wanted = template(pool=group(2), inner=within(web=server()))
    plan = action_of(api.post("/stacks", {"name": "shop", "template": wanted, "plan_only": True})).action_plan
    assert plan.state == ActionPlan.State.RECOMMENDED
    planned = Action.objects.filter(action_plan=plan, action_type="create_resource")
    # A group with two members, and a stack with one server.
    assert planned.count() == 5
    assert api.get("/stacks/shop").json()["stack_status"] == "INIT_COMPLETE"
    plan.launch()
    run_waiting()
    assert api.get("/stacks/shop").json()["stack_status"] == "CREATE_COMPLETE"


def test_update_without_a_template_replaces_marked_resources(api: Caller) -> None:
    stack = done(api.post("/stacks", WEB))
    web = stack.resources.get(name="web")
    web.mark_unhealthy("it does not answer")
    web.save_state()
    done(api.put(path(stack)))
    shown = api.get(f"{path(stack)}/resources/web").json()
    assert shown["resource_status"] == "UPDATE_COMPLETE"
    assert shown["physical_resource_id"] != web.physical_id


def test_template_is_accepted_as_yaml_text(api: Caller) -> None:
    text = "resources: {web: {type: server, properties: {flavor: small}}}"
    assert done(api.post("/stacks", {"name": "shop", "template": text})).template == template(web=server())


BAD = [
    ({"name": None}, "Mandatory field missing"),
    ({"name": "1st"}, "name: must have 1 to 255 letters, digits, _, - and ., the first of them a letter."),
    ({"name": "a b"}, "name: must have"),
    ({"name": "shop\n"}, "name: must have"),
    ({"name": "a" * 256}, "no more than 255 characters"),
    ({"plan_only": "maybe"}, "plan_only. Must be a valid boolean"),
    ({"plan_only": "yes"}, "plan_only. Must be a valid boolean: true or false, not a text or a number."),
    ({"plan_only": 1}, "plan_only. Must be a valid boolean"),
    ({"id": "7"}, "Cannot set read only field"),
    ({"tags": "a"}, "Unknown attribute for argument stack: tags"),
    ({"template": None}, "Mandatory field missing"),
    ({"template": 5}, "template: 5 is not of type 'object'"),
    ({"template": "a: &a [*a]"}, "template: line 1: anchors and aliases are not taken."),
    ({"template": template(web=server("huge"))}, "template: resources.web.properties.flavor: the cloud has no flavor"),
    ({"template": template(web=server(depends_on=["web"]))}, "resources.web.depends_on: web → web is a cycle."),
    ({"template": template(web=group(-1))}, "resources.web.properties.size: -1 is less than the minimum of 0"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_invalid_stack_is_refused_and_not_created(api: Caller, change: Any, words: str) -> None:
    answer = api.post("/stacks", WEB | change)
    assert answer.status_code == 400
    assert words in fault(answer)
    assert not Stack.objects.exists()
    assert not ActionPlan.objects.exists()


def test_stack_name_is_unique_within_a_project(api: Caller) -> None:
    make_stack("shop", project_id="acme")
    assert api.post("/stacks", WEB | {"project_id": "other", "plan_only": True}).status_code == 202
    refused = api.post("/stacks", WEB | {"project_id": "acme"})
    assert (refused.status_code, fault(refused)) == (409, "name: another stack of the project is called shop.")


def test_pending_operation_blocks_other_operations_but_not_plan_only(api: Caller) -> None:
    stack = Stack.objects.get(uuid=api.post("/stacks", WEB).json()["stack"])
    for refused in (api.put(path(stack)), api.delete(path(stack))):
        assert refused.status_code == 409
        assert "conflicts with the following action(s)" in fault(refused)
    assert api.delete(f"{path(stack)}?plan_only=true").status_code == 202


def test_nested_stack_is_neither_updated_nor_deleted_on_its_own(api: Caller) -> None:
    inner = make_stack("shop-inner-x", make_resource(make_stack(), "inner", type="stack"))
    for refused in (api.put(path(inner)), api.delete(path(inner))):
        assert refused.status_code == 409
        assert fault(refused) == "Stack shop-inner-x is within stack shop: that is the one to change or delete."


@pytest.mark.parametrize("body", [{"template": []}, {"template": template(web=server("huge"))}, [], {"name": "x"}])
def test_invalid_update_is_refused(api: Caller, body: Any) -> None:
    assert api.put(path(make_stack()), body).status_code == 400
    assert not ActionPlan.objects.exists()


# Lists and details


def test_stack_is_found_by_name_by_id_and_by_both(api: Caller) -> None:
    stack, other = make_stack("shop.json"), make_stack("other")
    for called in ("shop.json", str(stack.uuid), f"shop.json/{stack.uuid}"):
        assert api.get(f"/stacks/{called}").json()["id"] == str(stack.uuid)
    for called in ("store", str(uuid4()), f"shop.json/{other.uuid}", "shop.json/7", f"shop.json/{uuid4()}"):
        assert api.get(f"/stacks/{called}").status_code == 404
    make_stack("other", project_id="acme")
    ambiguous = api.get("/stacks/other")
    assert (ambiguous.status_code, fault(ambiguous)) == (400, "Multiple stacks are called other. Name it by its id.")


def test_stack_list_is_filtered_and_includes_nested_stacks_on_request(api: Caller) -> None:
    shop = make_stack("shop", project_id="acme", status="CHECK_FAILED")
    make_stack("shop-inner-x", make_resource(shop, "inner", type="stack"))
    make_stack("blog")
    for query, expected in (
        ("", ["shop", "blog"]),
        ("?show_nested=true", ["shop", "shop-inner-x", "blog"]),
        ("?status=check_failed", ["shop"]),
        ("?name=blog&name=none", ["blog"]),
        ("?project_id=acme", ["shop"]),
        ("?sort_key=stack_name&limit=1", ["blog"]),
        ("?sort_key=stack_name&marker=blog", ["shop"]),
        ("/detail", ["shop", "blog"]),
    ):
        assert names(api.get(f"/stacks{query}"), "stack_name", "stacks") == expected
    for query in ("status=BROKEN", "show_nested=perhaps", "sort_key=project", "marker=none", "colour=red"):
        assert api.get(f"/stacks?{query}").status_code in (400, 404)


@pytest.fixture
def tree() -> Stack:
    """A stack with a server and a nested stack, which has another server."""
    shop = make_stack("shop")
    make_resource(shop, "web", physical_id="7", depends_on=["inner"])
    inner = make_stack("shop-inner-x", make_resource(shop, "inner", type="stack"))
    make_resource(inner, "deep", physical_id="8", status="CHECK_FAILED", status_reason="broken")
    return shop


def test_resource_is_shown_with_its_parent_and_links(api: Caller, tree: Stack) -> None:
    inner = StackResource.objects.get(name="inner")
    nested = Stack.objects.get(name="shop-inner-x")
    shown = api.get(f"{path(tree)}/resources/inner").json()
    created, updated = shown.pop("creation_time"), shown.pop("updated_time")
    assert (bool(created), updated) == (True, None)
    address = f"http://testserver/v1{path(tree)}"
    assert shown == {
        "id": str(inner.uuid),
        "resource_name": "inner",
        "logical_resource_id": "inner",
        "physical_resource_id": str(nested.uuid),
        "resource_type": "stack",
        "resource_status": "INIT_COMPLETE",
        "resource_status_reason": "",
        "required_by": ["web"],
        "parent_resource": None,
        "links": [
            {"href": f"{address}/resources/inner", "rel": "self"},
            {"href": address, "rel": "stack"},
            {"href": f"http://testserver/v1{path(nested)}", "rel": "nested"},
        ],
    }
    assert api.get(f"{path(nested)}/resources/deep").json()["parent_resource"] == "inner"


@pytest.mark.parametrize("called", ["web", "7", "shop-web"])
def test_resource_is_found_by_any_of_its_names(api: Caller, tree: Stack, called: str) -> None:
    assert api.get(f"{path(tree)}/resources/{called}").json()["resource_name"] == "web"


def test_unknown_resource_returns_404_and_an_ambiguous_one_is_refused(api: Caller, tree: Stack) -> None:
    make_resource(tree, "twin", physical_id="7")
    missing, several = api.get(f"{path(tree)}/resources/deep"), api.get(f"{path(tree)}/resources/7")
    assert (missing.status_code, fault(missing)) == (404, "The Resource (deep) could not be found in Stack shop.")
    assert (several.status_code, fault(several)) == (
        400,
        "Multiple resources were found with the physical ID (7).",
    )


def test_resources_are_filtered_and_listed_to_the_requested_depth(api: Caller, tree: Stack) -> None:
    for query, expected in (
        ("", ["web", "inner"]),
        ("?nested_depth=1", ["web", "inner", "deep"]),
        ("?nested_depth=5&status=CHECK_FAILED", ["deep"]),
        ("?type=stack", ["inner"]),
        ("?name=web&name=none", ["web"]),
        ("?sort_key=resource_name&sort_dir=desc", ["web", "inner"]),
    ):
        assert names(api.get(f"{path(tree)}/resources{query}")) == expected
    for query in ("nested_depth=-1", "nested_depth=deep", "type=volume", "status=BROKEN", "sort_key=size"):
        assert api.get(f"{path(tree)}/resources?{query}").status_code == 400


def test_resource_list_continues_at_its_next_link(api: Caller, tree: Stack) -> None:
    following = api.get(f"{path(tree)}/resources?limit=1&nested_depth=1").json()["next"]
    assert following.startswith(f"http://testserver/v1{path(tree)}/resources?nested_depth=1&")
    assert names(api.get(following.removeprefix("http://testserver/v1"))) == ["inner"]


def test_resource_list_query_count_does_not_depend_on_the_number_of_resources(
    api: Caller, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    api.get("/stacks")  # Permissions are read once.
    for name, number in (("small", 9), ("large", 999)):
        stack = make_stack(name)
        pool = make_resource(stack, "pool", type="scaling_group")
        group_stack = make_stack(f"{name}-pool-x", pool)
        members = [StackResource(stack=group_stack, name=f"m{one}", type="server") for one in range(number)]
        StackResource.objects.bulk_create(members)
        # The stack, its nested stacks, the page, the dependencies, the nested stacks of the resources.
        with django_assert_num_queries(5):
            assert len(names(api.get(f"{path(stack)}/resources?nested_depth=1"))) == number + 1


# Permissions


def test_plan_only_is_refused_without_the_view_permission_for_plans(member: Caller, api: Caller) -> None:
    theirs = make_stack("theirs", project_id="acme")
    for answer in (
        member.post("/stacks", WEB | {"plan_only": True}),
        member.put(path(theirs), {"plan_only": True}),
        member.delete(f"{path(theirs)}?plan_only=true"),
    ):
        words = "plan_only: you may not see plans; without plan_only it is done at once."
        assert (answer.status_code, fault(answer)) == (403, words)
    assert not ActionPlan.objects.exists()
    assert Stack.objects.count() == 1


def test_members_see_and_change_only_stacks_of_their_projects(member: Caller, api: Caller) -> None:
    theirs, other = make_stack("theirs", project_id="acme"), make_stack("other", project_id="globex")
    make_resource(other)
    assert names(member.get("/stacks"), "stack_name", "stacks") == ["theirs"]
    for denied in (
        member.get("/stacks/other"),
        member.get(path(other)),
        member.get(f"{path(other)}/resources"),
        member.get(f"{path(other)}/resources/web"),
        member.get(f"{path(other)}/template"),
        member.put(path(other)),
        member.delete(path(other)),
    ):
        assert denied.status_code == 404
    assert done(member.post("/stacks", WEB)).project_id == "acme"
    assert done(member.put(path(theirs))).status == "UPDATE_COMPLETE"
    refused = member.post("/stacks", WEB | {"project_id": "globex"})
    assert (refused.status_code, fault(refused)) == (400, "project_id: must be one of your projects: acme.")


def test_readers_see_stacks_but_cannot_change_them(stranger: User, reader: User) -> None:
    stack = make_stack(project_id="acme")
    assert Caller(stranger, "1.11").get("/stacks").status_code == 403
    assert Caller(reader, "1.11").get(path(stack)).status_code == 200
    for refused in (Caller(reader, "1.11").put(path(stack)), Caller(reader, "1.11").delete(path(stack))):
        assert refused.status_code == 403
    assert Caller(reader, "1.11").post("/stacks", WEB).status_code == 403


def test_stacks_are_not_acceptable_before_microversion_1_11(cloud_admin: User) -> None:
    stack = make_stack()
    for where in ("/stacks", path(stack), f"{path(stack)}/resources", f"{path(stack)}/template"):
        assert Caller(cloud_admin, "1.10").get(where).status_code == 406


def test_further_server_properties_are_accepted_from_microversion_1_15_on(api: Caller) -> None:
    body = {"name": "shop", "template": template(web=group(1, server(key_name="mine")))}
    answer = api.post("/stacks", body)
    where = "template.resources.web.properties.member.properties.key_name"
    assert (answer.status_code, where in fault(answer)) == (406, True), fault(answer)
    api.headers = {"OpenStack-API-Version": "infra-optim 1.15"}
    assert api.post("/stacks", body).status_code == 202
