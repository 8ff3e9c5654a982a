"""Preflights foresee the outcomes of operations on stacks and on their resources."""

import re
from typing import Any

import pytest

from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.operations.skipping import skip_action
from actions.types.locking import take_lock
from cluster.drivers.quotas import set_quota
from cluster.models import ComputeNode, Server, Stack, StackResource
from plans.models import ActionPlan
from plans.operations.stacks import delete_stack
from plans.planning.proposals import propose
from plans.preflight import Preflight, preflight
from tests.actions.exclusions.builders import make_exclusion
from tests.actions.types.stacks.builders import (
    create,
    group,
    inside,
    mark,
    part,
    proposed,
    reload,
    server,
    template,
    within,
)
from tests.builders import make_flavor, make_node, make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db
PLANNED = pytest.mark.parametrize("plan_only", [True, False])


@pytest.fixture(autouse=True)
def capacity(settings: Any) -> None:
    settings.ACTION_RETRY_INTERVAL = 0
    make_node("compute1", vcpus=8, memory=8 * 1024, disk=80)
    make_flavor("small", vcpus=1, memory=1024, disk=1)
    make_flavor("large", vcpus=2, memory=1024, disk=1)
    make_flavor("huge", vcpus=99, memory=1024, disk=1)


def new(**resources: Any) -> Stack:
    made: Stack = Stack.objects.create(name="shop", template=template(**resources), project_id="acme")
    return made


def make_stack_plan(kind: str, target: Any, *, plan_only: bool = False, **inputs: Any) -> ActionPlan:
    """Make a recommended plan of a stack operation, with all planned actions or with one action."""
    if plan_only:
        return proposed(kind, target, plan_only=True, **inputs)
    return propose([ProposedAction(kind, {"resource_id": str(target.uuid), "resource_name": target.name, **inputs})])


def make_replacement_plan(*resources: StackResource, **inputs: Any) -> ActionPlan:
    targets = [{"resource_id": str(one.uuid), "resource_name": one.name, **inputs} for one in resources]
    return propose([ProposedAction("replace_resource", target) for target in targets])


def outcomes(found: Preflight) -> list[tuple[str, str, str | None]]:
    """Return the type and the outcome of each action, and the message if it would not succeed."""
    return sorted((one.action.action_type, one.outcome, message(one.outcome, one)) for one in found.prospects)


def message(outcome: str, prospect: Any) -> str:
    return "" if outcome == "SUCCEEDED" else without_generated_names(prospect.foresight.message)


def without_generated_names(words: Any) -> str:
    """Replace the names of members, which are random if they were not planned."""
    return re.sub(r"Resource [a-z2-7]{12}\b", "Resource member", str(words))


def run_and_read_outcomes(plan: ActionPlan) -> list[tuple[str, str, str]]:
    """Run a plan, and return the results of its actions."""
    keys = list(plan.actions.unfinished().values_list("pk", flat=True))
    ActionPlan.objects.get(pk=plan.pk).launch()
    run_waiting()
    rows = Action.objects.filter(pk__in=keys).values_list("action_type", "state", "status_message")
    return sorted(
        (kind, state, "" if state == "SUCCEEDED" else without_generated_names(words)) for kind, state, words in rows
    )


def compare_preflight_and_run(plan: ActionPlan) -> list[tuple[str, str]]:
    before = rows()
    foreseen = outcomes(preflight(plan))
    assert rows() == before
    assert run_and_read_outcomes(plan) == foreseen
    return [(kind, state) for kind, state, _ in foreseen]


def rows() -> list[Any]:
    """Return the rows that a preflight must not change."""
    return [list(model.objects.order_by("pk").values()) for model in (Stack, StackResource, Server, Action)]


def fill_cloud() -> None:
    ComputeNode.objects.update(status="disabled")


# Replacement of resources


def test_replacement_of_a_marked_resource_succeeds() -> None:
    stack = create(web=server())
    mark(part(stack, "web"))
    assert compare_preflight_and_run(make_replacement_plan(part(stack, "web"), expected_status="CHECK_FAILED")) == [
        ("replace_resource", "SUCCEEDED")
    ]


def test_replacement_whose_mark_was_cleared_is_skipped() -> None:
    stack = create(web=server())
    assert compare_preflight_and_run(make_replacement_plan(part(stack, "web"), expected_status="CHECK_FAILED")) == [
        ("replace_resource", "SKIPPED")
    ]


def test_replacement_of_a_deleted_resource_is_skipped() -> None:
    stack = create(web=server())
    plan = make_replacement_plan(part(stack, "web"))
    delete_stack(stack)
    run_waiting()
    assert compare_preflight_and_run(plan) == [("replace_resource", "SKIPPED")]


def test_replacement_on_a_full_cloud_rebuilds_the_server_in_place() -> None:
    stack = create(web=server())
    mark(part(stack, "web"))
    fill_cloud()
    assert compare_preflight_and_run(make_replacement_plan(part(stack, "web"))) == [("replace_resource", "SUCCEEDED")]


def test_replacement_with_another_flavor_fails_on_a_full_cloud() -> None:
    stack = create(web=server())
    Stack.objects.filter(pk=stack.pk).update(template=template(web=server("huge")))
    assert compare_preflight_and_run(make_replacement_plan(part(stack, "web"))) == [("replace_resource", "FAILED")]


def test_several_resources_of_a_stack_are_replaced_in_one_plan() -> None:
    stack = create(web=group(3), one=server())
    members = list(inside(part(stack, "web")).resources.all())
    plan = make_replacement_plan(*members, members[0], part(stack, "one"), expected_status="CREATE_COMPLETE")
    assert compare_preflight_and_run(plan) == [
        ("replace_resource", "SKIPPED"),
        *[("replace_resource", "SUCCEEDED")] * 4,
    ]


def test_marked_group_is_replaced_with_its_members() -> None:
    stack = create(web=group(2))
    mark(part(stack, "web"))
    assert compare_preflight_and_run(make_replacement_plan(part(stack, "web"))) == [("replace_resource", "SUCCEEDED")]


def test_replacement_of_a_group_fails_without_capacity() -> None:
    stack = create(web=group(5))
    assert compare_preflight_and_run(make_replacement_plan(part(stack, "web"))) == [("replace_resource", "FAILED")]


@pytest.mark.parametrize("kind", ["create_resource", "update_resource", "delete_resource"])
def test_resource_actions_outside_of_a_stack_operation_fail(kind: str) -> None:
    stack = create(web=server())
    assert compare_preflight_and_run(make_stack_plan(kind, part(stack, "web"))) == [(kind, "FAILED")]


# Whole stacks


@PLANNED
def test_creation_within_the_capacity_succeeds(plan_only: bool) -> None:
    stack = new(web=group(2), deep=within(inner=within(one=server())), last=server(depends_on=["web"]))
    found = compare_preflight_and_run(make_stack_plan("create_stack", stack, plan_only=plan_only))
    assert set(found) == {("create_stack", "SUCCEEDED"), *([("create_resource", "SUCCEEDED")] if plan_only else [])}


@PLANNED
@pytest.mark.parametrize(
    "resources",
    [
        {"web": server("huge"), "last": server(depends_on=["web"])},
        {"web": group(2, server("huge")), "other": server()},
        {"web": group(9)},
        {"deep": within(inner=within(one=server("unknown")))},
    ],
)
def test_creation_beyond_the_capacity_fails_with_the_reason(plan_only: bool, resources: Any) -> None:
    assert ("create_stack", "FAILED") in compare_preflight_and_run(
        make_stack_plan("create_stack", new(**resources), plan_only=plan_only)
    )


@PLANNED
def test_creation_beyond_the_quota_of_the_project_fails(plan_only: bool) -> None:
    set_quota("acme", {"servers": 2})
    assert ("create_stack", "FAILED") in compare_preflight_and_run(
        make_stack_plan("create_stack", new(web=group(3)), plan_only=plan_only)
    )


def test_failure_message_names_the_resource_and_the_reason() -> None:
    [prospect] = preflight(make_stack_plan("create_stack", new(web=server("huge")))).prospects
    assert str(prospect.foresight.message).endswith(
        "Resource web: No valid host was found. There are not enough hosts available."
    )


@PLANNED
@pytest.mark.parametrize(
    ("resources", "state"),
    [
        ({"web": server("large"), "more": server(), "group": group(3)}, "SUCCEEDED"),
        ({"web": server("huge"), "group": group(2)}, "FAILED"),
        ({"web": server(image="other", metadata={"a": "b"}), "group": group(1)}, "SUCCEEDED"),
        ({"web": server(), "group": group(2, server("large"))}, "SUCCEEDED"),
        ({"web": server(), "group": group(2, server("huge"), batch=2)}, "FAILED"),
        ({"web": group(2), "group": server()}, "SUCCEEDED"),
        ({"group": group(2)}, "SUCCEEDED"),
    ],
)
def test_update_is_foreseen(plan_only: bool, resources: Any, state: str) -> None:
    stack = create(web=server(), group=group(2))
    plan = make_stack_plan("update_stack", stack, plan_only=plan_only, template=template(**resources))
    assert ("update_stack", state) in compare_preflight_and_run(plan)


@PLANNED
def test_update_that_replaces_marked_resources_succeeds_on_a_full_cloud(plan_only: bool) -> None:
    stack = create(web=server(), group=group(2))
    mark(part(stack, "web"))
    mark(inside(part(stack, "group")).resources.order_by("pk")[0])
    fill_cloud()
    assert ("update_stack", "SUCCEEDED") in compare_preflight_and_run(
        make_stack_plan("update_stack", stack, plan_only=plan_only)
    )


@PLANNED
def test_update_that_replaces_a_whole_marked_stack_succeeds(plan_only: bool) -> None:
    stack = create(web=server(), group=group(2))
    mark(stack)
    assert ("update_stack", "SUCCEEDED") in compare_preflight_and_run(
        make_stack_plan("update_stack", stack, plan_only=plan_only)
    )


@PLANNED
def test_deletion_succeeds(plan_only: bool) -> None:
    stack = create(web=server(), group=group(2), deep=within(one=server()))
    assert ("delete_stack", "SUCCEEDED") in compare_preflight_and_run(
        make_stack_plan("delete_stack", stack, plan_only=plan_only)
    )


def test_deletion_with_a_skipped_resource_fails_and_names_the_resource() -> None:
    stack = create(web=server(), group=group(2))
    plan = make_stack_plan("delete_stack", stack, plan_only=True)
    skip_action(plan.actions.get(input_parameters__resource_name="web").uuid, "rosa")
    assert ("delete_stack", "FAILED") in compare_preflight_and_run(plan)


def test_skipped_actions_of_a_planned_creation_are_not_executed() -> None:
    stack = new(web=server("huge"), other=server())
    plan = make_stack_plan("create_stack", stack, plan_only=True)
    skip_action(plan.actions.get(input_parameters__resource_name="web").uuid, "rosa")
    assert ("create_stack", "SUCCEEDED") in compare_preflight_and_run(plan)


@PLANNED
def test_excluded_resource_is_skipped(plan_only: bool) -> None:
    stack = create(web=server(), other=server())
    wanted = template(web=server("large"), other=server())
    plan = make_stack_plan("update_stack", stack, plan_only=plan_only, template=wanted)
    make_exclusion("frozen", targets={"servers": [str(part(stack, "web").physical_id)]})
    assert ("update_stack", "SUCCEEDED") in compare_preflight_and_run(plan)


@PLANNED
def test_exclusion_by_project_applies_to_resources_that_do_not_exist_yet(plan_only: bool) -> None:
    plan = make_stack_plan("create_stack", new(web=server("huge"), group=group(2)), plan_only=plan_only)
    make_exclusion("frozen", action_types=["create_resource"], targets={"projects": ["acme"]})
    assert ("create_stack", "SUCCEEDED") in compare_preflight_and_run(plan)


def test_operation_on_a_deleted_stack_is_skipped() -> None:
    stack = new(web=server())
    plan = make_stack_plan("update_stack", stack)
    Stack.objects.filter(pk=stack.pk).soft_delete()
    assert compare_preflight_and_run(plan) == [("update_stack", "SKIPPED")]


# Changes after planning


def test_update_of_a_stack_changed_after_planning_fails() -> None:
    stack = create(web=server())
    plan = make_stack_plan("update_stack", stack, plan_only=True, template=template(web=server("large")))
    Stack.objects.filter(pk=stack.pk).update(revision=9)
    [failed] = [one for one in preflight(plan).prospects if one.action.action_type == "update_stack"]
    assert (failed.outcome, failed.foresight.message) == (
        "FAILED",
        "Action failed in execute: The stack was changed since this plan was made.",
    )


def test_update_of_a_stack_whose_marks_changed_after_planning_fails() -> None:
    stack = create(web=server())
    mark(part(stack, "web"))
    plan = make_stack_plan("update_stack", stack, plan_only=True)
    web = part(stack, "web")
    web.mark_healthy()
    web.save_state()
    [failed] = [one for one in preflight(plan).prospects if one.action.action_type == "update_stack"]
    assert failed.outcome == "FAILED"
    assert "The mark of web was withdrawn since this plan was made." in str(failed.foresight.message)


# Unknown outcomes


@pytest.mark.parametrize("kind", ["update_stack", "replace_resource"])
def test_action_waiting_for_a_lock_is_unknown_and_names_the_lock_holder(kind: str) -> None:
    stack = create(web=server())
    holder = make_plan({"holder": []}).actions.get()
    take_lock(stack, str(holder.uuid))
    [found] = preflight(make_stack_plan(kind, stack if kind == "update_stack" else part(stack, "web"))).prospects
    words = f"Failed in locking stack {stack.uuid}: action {holder.uuid} is at work on it"
    assert (found.outcome, found.foresight.message) == ("UNKNOWN", f"It would wait: {words}")


def test_planned_actions_of_an_operation_waiting_for_a_lock_are_unknown() -> None:
    stack = new(web=server())
    plan = make_stack_plan("create_stack", stack, plan_only=True)
    take_lock(stack, str(make_plan({"holder": []}).actions.get().uuid))
    assert {one.outcome for one in preflight(plan).prospects} == {"UNKNOWN"}


@PLANNED
def test_server_without_capacity_is_unknown_if_servers_wait_as_pending(plan_only: bool, settings: Any) -> None:
    settings.USE_PENDING_STATE = True
    found = preflight(make_stack_plan("create_stack", new(web=server("huge")), plan_only=plan_only)).prospects
    assert {one.outcome for one in found} == {"UNKNOWN"}
    words = "No host has capacity for server shop-web, which waits for it as PENDING"
    assert all(words in str(one.foresight.message) for one in found)


def test_second_operation_on_the_same_stack_is_unknown() -> None:
    stack = create(web=server())
    named = {"resource_id": str(stack.uuid), "resource_name": stack.name}
    plan = propose([ProposedAction("update_stack", named), ProposedAction("delete_stack", named)])
    first, second = preflight(plan).prospects
    assert (first.outcome, second.outcome) == ("SUCCEEDED", "UNKNOWN")
    assert second.foresight.message == f"Another action of the plan changes stack {stack.uuid} before."


def test_statement_count_does_not_depend_on_the_size_of_the_stack() -> None:
    make_node("compute2", vcpus=500, memory=500 * 1024, disk=5000)
    make_exclusion("frozen", targets={"projects": ["other"]})
    costs = []
    for size in (2, 12):
        stack = create(f"stack-{size}", web=group(size), deep=within(one=group(size), two=group(size)))
        members = list(inside(part(stack, "web")).resources.all())
        larger = template(web=group(size, server("large")), deep=within(one=group(2 * size), two=group(1)))
        plans = [
            make_stack_plan("update_stack", stack, template=larger),
            make_stack_plan("update_stack", stack, plan_only=True, template=larger),
            make_stack_plan("delete_stack", stack),
            make_stack_plan("delete_stack", stack, plan_only=True),
            make_stack_plan("create_stack", Stack.objects.create(name=f"new-{size}", template=reload(stack).template)),
            make_replacement_plan(*members),
        ]
        with counted() as statements:
            for plan in plans:
                preflight(plan)
        costs.append(len(statements))
    assert costs[0] == costs[1]
