"""Replacement of one resource of a stack: by its own plan, by a change of its type, and by a rebuild in place."""

from typing import Any

import pytest

from actions.models import Action
from actions.models.instance_actions import InstanceAction
from actions.types.locking import take_lock, take_locks
from actions.types.stacks import replace_resource
from cluster.drivers.base import CloudBusy
from cluster.drivers.embedded import EmbeddedCloud
from cluster.models import ComputeNode, Server, Stack, StackResource
from cluster.models.stacks import Verb
from plans.applier.applier import Applier
from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from tests.actions.types.stacks.builders import (
    create,
    group,
    inside,
    mark,
    names,
    part,
    proposed,
    reload,
    run,
    server,
    servers,
    statuses,
    template,
    within,
)
from tests.actions.types.stacks.test_stack_leftovers import refuse
from tests.builders import make_flavor, make_node, make_plan
from tests.plans.inline import InlineExecutor, run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def capacity(settings: Any) -> None:
    settings.ACTION_RETRY_INTERVAL = 0
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")


def only(plan: ActionPlan) -> Action:
    found: Action = Action.objects.get(action_plan=plan, derived_from=None)
    return found


def test_marked_member_is_replaced_by_its_own_plan() -> None:
    stack = create(web=group(2))
    member = inside(part(stack, "web")).resources.order_by("pk")[0]
    before = set(servers().values())
    mark(member)
    plan = run("replace_resource", member, expected_status="CHECK_FAILED")
    assert plan.state == "SUCCEEDED"
    assert (reload(member).status, reload(member).generation) == ("UPDATE_COMPLETE", 1)
    assert len(before.difference(servers().values())) == 1
    assert len(servers()) == 2


def test_replacement_is_skipped_if_the_status_is_not_the_expected_one() -> None:
    stack = create(web=server())
    plan = run("replace_resource", part(stack, "web"), expected_status="CHECK_FAILED")
    assert only(plan).state == "SKIPPED"
    assert "is CREATE_COMPLETE, and no longer CHECK_FAILED" in str(only(plan).status_message)


def test_replacement_is_skipped_if_the_status_changed_before_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server())
    mark(part(stack, "web"))

    def clear_first(*arguments: Any) -> Any:
        web = part(stack, "web")
        web.mark_healthy()
        web.save_state()
        monkeypatch.undo()
        return take_locks(*arguments)

    monkeypatch.setattr(replace_resource, "take_locks", clear_first)
    plan = run("replace_resource", part(stack, "web"), expected_status="CHECK_FAILED")
    assert only(plan).state == "SKIPPED"
    assert part(stack, "web").generation == 0


def test_marked_group_is_replaced_by_its_own_plan() -> None:
    stack = create(web=group(2))
    members = names(inside(part(stack, "web")))
    mark(part(stack, "web"))
    plan = run("replace_resource", part(stack, "web"))
    assert plan.state == "SUCCEEDED", plan.status_message
    assert not set(members).intersection(names(inside(part(stack, "web"))))
    assert len(servers()) == 2
    assert Stack.objects.present().count() == 2


def test_stacks_are_complete_after_the_replacement_of_all_failed_resources() -> None:
    huge = make_flavor("huge", vcpus=10_000)
    stack = Stack.objects.create(name="shop", template=template(more=within(web=server("huge"), other=server())))
    assert run("create_stack", stack).state == "FAILED"
    assert reload(stack).status == part(stack, "more").status == "CREATE_FAILED"
    huge.vcpus = 1
    huge.save()
    assert run("replace_resource", part(stack, "more", "web")).state == "SUCCEEDED"
    assert statuses(stack) == {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def test_failed_stack_stays_failed_if_its_completion_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server())
    stack.begin(Verb.UPDATE)
    stack.fail("once")
    stack.save_state()
    monkeypatch.setattr(replace_resource, "end_with_success", refuse)
    run("replace_resource", part(stack, "web"))
    assert reload(stack).status == "UPDATE_FAILED"


@pytest.mark.parametrize(("held", "is_let"), [("root", False), ("group", False), ("other", True)])
def test_replacement_is_deferred_while_its_stack_or_group_is_locked(held: str, is_let: bool) -> None:
    stack = create(web=group(1), other=server())
    records = {"root": stack, "group": part(stack, "web"), "other": part(stack, "other")}
    holder = Action.objects.create(action_plan=make_plan(), action_type="nop")
    assert take_lock(records[held], str(holder.uuid)) is None
    plan = proposed("replace_resource", inside(part(stack, "web")).resources.get())
    Applier(InlineExecutor()).advance()
    one = plan.actions.get(derived_from=None)
    assert one.lock_holder == (None if is_let else holder.uuid)
    if not is_let:
        assert one.state == "PENDING"
        assert "Failed in locking" in str(one.status_message)


def test_derived_resource_action_is_refused_as_a_requested_action() -> None:
    stack = create(web=server())
    plan = run("delete_resource", part(stack, "web"))
    assert "use update_stack" in str(only(plan).status_message)
    assert len(servers()) == 1


def test_resource_changes_its_type_and_back() -> None:
    stack = create(web=server())
    assert run("update_stack", stack, template=template(web=group(2))).state == "SUCCEEDED"
    assert (part(stack, "web").type, len(servers())) == ("scaling_group", 2)
    assert run("update_stack", stack, template=template(web=server())).state == "SUCCEEDED"
    assert (part(stack, "web").type, list(servers())) == ("server", ["shop-web"])
    assert Stack.objects.present().count() == 1


def test_next_update_deletes_the_leftovers_of_a_failed_group_replacement() -> None:
    stack = create(web=group(1))
    mark(part(stack, "web"))
    make_flavor("huge", vcpus=10_000)
    wanted = template(web=group(2, within(one=server(), two=server("huge"))))
    assert run("update_stack", stack, template=wanted).state == "FAILED"
    assert part(stack, "web").status == "CHECK_FAILED"
    assert len(servers()) == 3
    assert run("update_stack", stack, template=template(web=group(1))).state == "SUCCEEDED"
    assert (len(servers()), Stack.objects.present().count()) == (1, 2)


def test_stack_of_a_cancelled_creation_can_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Stack.objects.create(name="shop", template=template(web=server(), other=server(depends_on=["web"])))
    plan = proposed("create_stack", stack)
    begin = StackResource.begin

    def cancel(resource: StackResource, verb: Any) -> Any:
        if resource.name == "web":
            current = ActionPlan.objects.get(pk=plan.pk)
            current.abandon("rosa")
        return begin(resource, verb)

    monkeypatch.setattr(StackResource, "begin", cancel)
    run_waiting()
    monkeypatch.undo()
    assert reload(plan).state == "CANCELLED"
    assert reload(stack).status == "CREATE_FAILED"
    assert part(stack, "other").status == "INIT_COMPLETE"
    assert run("delete_stack", stack).state == "SUCCEEDED"
    assert not Server.objects.present().exists()


def test_failed_creation_is_reverted_with_rollback(settings: Any) -> None:
    settings.ROLLBACK = True
    make_flavor("huge", vcpus=10_000)
    stack = Stack.objects.create(name="shop", template=template(web=server(), other=server("huge")))
    assert run("create_stack", stack).state == "FAILED"
    assert (part(stack, "web").status, part(stack, "web").physical_id) == ("CREATE_FAILED", None)
    assert not servers()


def test_continuation_of_an_immediately_started_plan_creates_the_remaining_resources() -> None:
    huge = make_flavor("huge", vcpus=10_000)
    stack = Stack.objects.create(name="shop", template=template(web=server(), other=server("huge")))
    plan = run("create_stack", stack)
    before = servers()
    huge.vcpus = 1
    huge.save()
    continued = continue_plan(plan)
    continued.launch()
    run_waiting()
    assert reload(continued).state == "SUCCEEDED"
    assert servers().items() > before.items()
    assert reload(stack).status == "CREATE_COMPLETE"


# No host has capacity for a new server


def fill_cloud(stack: Stack) -> dict[str, str]:
    """Fill all hosts, and return the existing servers."""
    ComputeNode.objects.update(status="disabled")
    return dict(servers())


def test_marked_server_is_rebuilt_in_place_on_a_full_cloud() -> None:
    stack = create(web=server(image="old"))
    before = fill_cloud(stack)
    mark(part(stack, "web"))
    plan = run("update_stack", stack, template=template(web=server(image="new", metadata={"a": "b"})))
    assert plan.state == "SUCCEEDED"
    resource, row = part(stack, "web"), Server.objects.present().get()
    assert (servers(), resource.status, resource.generation) == (before, "UPDATE_COMPLETE", 1)
    assert (row.image, row.metadata, resource.former_physical_id) == ("new", {"a": "b"}, None)
    done = Action.objects.get(action_type="replace_resource")
    assert done.outputs["in_place"] is True
    last = InstanceAction.objects.order_by("pk").last()
    assert last
    assert last.verb == "rebuild"


def test_marked_members_are_rebuilt_in_place_on_a_full_cloud() -> None:
    stack = create(web=group(3))
    before = fill_cloud(stack)
    for member in inside(part(stack, "web")).resources.all():
        mark(member)
    assert run("update_stack", stack).state == "SUCCEEDED"
    assert servers() == before
    assert set(inside(part(stack, "web")).resources.values_list("generation", flat=True)) == {1}


def test_server_rebuilt_in_place_can_be_replaced_and_deleted() -> None:
    stack = create(web=server())
    before = fill_cloud(stack)
    mark(part(stack, "web"))
    assert run("update_stack", stack).state == "SUCCEEDED"
    ComputeNode.objects.update(status="enabled")
    mark(part(stack, "web"))
    assert run("update_stack", stack).state == "SUCCEEDED"
    assert list(servers()) == list(before)
    assert servers() != before
    assert run("delete_stack", stack).state == "SUCCEEDED"
    assert not servers()


@pytest.mark.parametrize("wanted", [server("large"), server(availability_zone="nova")])
def test_server_with_a_new_flavor_or_zone_is_not_rebuilt_in_place_and_stays_marked(wanted: Any) -> None:
    make_flavor("large", vcpus=2)
    stack = create(web=server())
    before = fill_cloud(stack)
    mark(part(stack, "web"))
    assert run("update_stack", stack, template=template(web=wanted)).state == "FAILED"
    assert (servers(), part(stack, "web").status) == (before, "CHECK_FAILED")


def test_server_whose_rebuild_in_place_failed_is_kept_and_stays_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server())
    before = fill_cloud(stack)
    mark(part(stack, "web"))
    monkeypatch.setattr(EmbeddedCloud, "rebuild_server", refuse)
    assert run("update_stack", stack).state == "FAILED"
    assert (servers(), part(stack, "web").status) == (before, "CHECK_FAILED")
    monkeypatch.undo()
    assert run("update_stack", stack).state == "SUCCEEDED"
    assert (servers(), part(stack, "web").status) == (before, "UPDATE_COMPLETE")


def test_interrupted_rebuild_in_place_is_completed_even_with_capacity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = create(web=server())
    before = fill_cloud(stack)
    mark(part(stack, "web"))
    rebuild, calls = EmbeddedCloud.rebuild_server, []

    def rebuild_late(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) == 1:
            ComputeNode.objects.update(status="enabled")
            raise CloudBusy("It is busy")
        rebuild(*arguments)

    monkeypatch.setattr(EmbeddedCloud, "rebuild_server", rebuild_late)
    assert run("update_stack", stack).state == "SUCCEEDED"
    assert (servers(), len(calls)) == (before, 2)
