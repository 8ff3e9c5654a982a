"""create_stack, update_stack and delete_stack on the embedded cloud."""

from typing import Any

import pytest

from actions.models import Action
from cluster.models import Server, Stack, StackResource
from tests.actions.types.stacks.builders import (
    create_by_action,
    group,
    inside,
    mark,
    names,
    part,
    reload,
    run,
    server,
    servers,
    statuses,
    template,
    within,
)
from tests.builders import make_flavor, make_node

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def capacity() -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")
    make_flavor("large", vcpus=2)


def types_of(plan: Any) -> list[str]:
    """Return the types and names of the successful resource actions of a plan, in the order of their ends."""
    done = Action.objects.filter(action_plan=plan, derived_from__isnull=False, state="SUCCEEDED")
    ordered = done.order_by("end_time", "pk")
    return [f"{one.action_type.removesuffix('_resource')} {one.input_parameters['resource_name']}" for one in ordered]


def test_servers_are_created_in_the_project_of_the_stack_and_after_their_dependencies() -> None:
    stack = create_by_action(web=server(depends_on=["database"]), database=server("large"))
    assert (stack.status, stack.status_reason) == ("CREATE_COMPLETE", "CREATE completed successfully")
    assert servers() == {f"shop-{name}": part(stack, name).physical_id for name in ("web", "database")}
    assert set(Server.objects.values_list("project_id", "user_id")) == {("acme", "rosa")}
    assert types_of(Action.objects.get(action_type="create_stack").action_plan) == ["create database", "create web"]


def test_nested_stacks_in_a_group_are_created_and_deleted() -> None:
    stack = create_by_action(shop=within(web=group(2, within(one=server()))))
    assert len(servers()) == 2
    assert statuses(stack) == {"CREATE_COMPLETE"}
    assert run("delete_stack", stack).state == "SUCCEEDED"
    assert not servers()
    assert not Stack.objects.present().exists()
    assert not StackResource.objects.present().exists()


def test_update_creates_changes_replaces_and_deletes_only_resources_that_differ() -> None:
    stack = create_by_action(
        same=server(), size=server(), text=server(), gone=server(), **{"with": server(depends_on=["gone"])}
    )
    before = dict(servers())
    wanted = template(
        **{"new": server(depends_on=["text"]), "same": server(), "with": server()},
        size=server("large"),
        text=server(availability_zone="nova"),
    )
    plan = run("update_stack", stack, template=wanted)
    assert plan.state == "SUCCEEDED"
    assert sorted(types_of(plan)) == ["create new", "delete gone", "replace text", "update size"]
    assert types_of(plan).index("replace text") < types_of(plan).index("create new")
    assert names(stack) == ["new", "same", "size", "text", "with"]
    after = servers()
    assert {name for name in before if after.get(name) == before[name]} == {"shop-same", "shop-size", "shop-with"}
    assert Server.objects.present().get(name="shop-size").flavor == "large"
    assert reload(stack).status == "UPDATE_COMPLETE"
    assert types_of(run("update_stack", stack)) == []


def test_metadata_is_updated_in_place_and_foreign_keys_are_kept() -> None:
    stack = create_by_action(web=server(metadata={"role": "web", "tier": "1"}))
    before = dict(servers())
    row = Server.objects.present().get()
    row.metadata = {**row.metadata, "owner": "rosa"}
    row.save()
    plan = run("update_stack", stack, template=template(web=server(metadata={"role": "proxy", "new": "yes"})))
    assert (plan.state, types_of(plan)) == ("SUCCEEDED", ["update web"])
    assert servers() == before
    assert Server.objects.present().get().metadata == {"role": "proxy", "new": "yes", "owner": "rosa"}


def test_metadata_of_members_is_updated_in_place() -> None:
    stack = create_by_action(web=group(3, server(metadata={"role": "web"})))
    before = dict(servers())
    wanted = template(web=group(3, server("large", metadata={"role": "proxy"})))
    assert run("update_stack", stack, template=wanted).state == "SUCCEEDED"
    assert servers() == before
    found = Server.objects.present().values_list("metadata", "flavor")
    assert list(found) == [({"role": "proxy"}, "large")] * 3


def test_update_replaces_only_the_marked_resource_under_its_name() -> None:
    stack = create_by_action(web=server(), database=server())
    before = servers()
    mark(part(stack, "web"))
    assert types_of(run("update_stack", stack)) == ["replace web"]
    web = part(stack, "web")
    assert (web.status, web.generation, web.former_physical_id) == ("UPDATE_COMPLETE", 1, None)
    after = servers()
    assert after.keys() == before.keys()
    assert after["shop-web"] != before["shop-web"]
    assert after["shop-database"] == before["shop-database"]


def test_update_replaces_only_the_marked_member_under_its_name() -> None:
    stack = create_by_action(web=group(3))
    members = names(inside(part(stack, "web")))
    before = servers()
    mark(part(stack, "web", members[1]))
    assert sorted(types_of(run("update_stack", stack))) == [f"replace {members[1]}", "update web"]
    assert names(inside(part(stack, "web"))) == members
    after = servers()
    assert {name for name in before if after[name] != before[name]} == {
        f"{inside(part(stack, 'web')).name}-{members[1]}"
    }
    assert statuses(stack) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def test_update_replaces_a_marked_group_with_all_its_members() -> None:
    stack = create_by_action(web=group(2))
    former = inside(part(stack, "web"))
    members = names(former)
    mark(part(stack, "web"))
    plan = run("update_stack", stack)
    assert plan.state == "SUCCEEDED", plan.status_message
    assert not set(names(inside(part(stack, "web")))).intersection(members)
    assert reload(former).deleted_at
    assert len(servers()) == 2
    assert all(name.startswith(inside(part(stack, "web")).name) for name in servers())
    assert part(stack, "web").status == "UPDATE_COMPLETE"


def test_update_replaces_all_resources_of_a_marked_stack() -> None:
    stack = create_by_action(web=server(), more=within(one=server()))
    before = set(servers().values())
    mark(stack)
    assert run("update_stack", stack).state == "SUCCEEDED"
    assert len(servers()) == 2
    assert not before.intersection(servers().values())
    assert reload(stack).status == "UPDATE_COMPLETE"


def test_shrinking_group_removes_failed_members_then_the_oldest() -> None:
    stack = create_by_action(web=group(4))
    members = list(inside(part(stack, "web")).resources.order_by("made_at"))
    mark(members[2])
    assert run("update_stack", stack, template=template(web=group(2))).state == "SUCCEEDED"
    assert names(inside(part(stack, "web"))) == sorted([members[1].name, members[3].name])
    assert len(servers()) == 2


def test_rolling_update_starts_with_failed_members_in_batches() -> None:
    stack = create_by_action(web=group(3))
    members = list(inside(part(stack, "web")).resources.order_by("made_at"))
    mark(members[2])
    plan = run("update_stack", stack, template=template(web=group(3, server("large"), batch=2)))
    done = types_of(plan)
    assert sorted(done[:2]) == sorted([f"replace {members[2].name}", f"update {members[0].name}"])
    assert done[2:] == [f"update {members[1].name}", "update web"]


def test_stack_reports_a_failed_resource_and_its_dependents_are_not_created() -> None:
    stack = Stack.objects.create(
        name="shop", template=template(web=server("huge"), other=server(depends_on=["web"]), third=server())
    )
    make_flavor("huge", vcpus=10_000)
    plan = run("create_stack", stack)
    assert plan.state == "FAILED"
    reason = "Resource web: No valid host was found. There are not enough hosts available."
    assert (reload(stack).status, reload(stack).status_reason) == ("CREATE_FAILED", reason)
    assert [part(stack, name).status for name in ("web", "other", "third")] == [
        "CREATE_FAILED",
        "INIT_COMPLETE",
        "CREATE_COMPLETE",
    ]
    assert reason in str(Action.objects.get(action_type="create_stack").status_message)
    mended = template(web=server(), other=server(depends_on=["web"]), third=server())
    assert types_of(run("update_stack", stack, template=mended)) == ["replace web", "create other"]
    assert set(servers()) == {"shop-web", "shop-other", "shop-third"}


def test_failed_replacement_keeps_the_mark_and_the_server() -> None:
    stack = create_by_action(web=server())
    before = servers()
    mark(part(stack, "web"))
    make_flavor("huge", vcpus=10_000)
    assert run("update_stack", stack, template=template(web=server("huge"))).state == "FAILED"
    assert (part(stack, "web").status, servers()) == ("CHECK_FAILED", before)
    assert run("update_stack", stack, template=template(web=server())).state == "SUCCEEDED"
    assert part(stack, "web").status == "UPDATE_COMPLETE"
