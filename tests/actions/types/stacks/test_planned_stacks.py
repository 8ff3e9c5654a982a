"""Plans of stack operations that are reviewed, in which actions are skipped, and that are then started."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.utils import timezone

from actions.models import Action
from actions.operations.skipping import skip_action
from cluster.models import Stack
from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from tests.actions.types.clusters.test_cluster_updates import run_ready_actions
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
    template,
    within,
)
from tests.api import Caller, fault
from tests.builders import make_flavor, make_node
from tests.plans.inline import run_waiting
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def capacity() -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")
    make_flavor("large", vcpus=2)


def start(plan: ActionPlan) -> ActionPlan:
    plan = reload(plan)
    plan.launch()
    run_waiting()
    finished: ActionPlan = reload(plan)
    return finished


def planned(plan: ActionPlan) -> list[str]:
    """Return the planned derived actions of a plan, each with its deriving action."""
    found = Action.objects.filter(action_plan=plan, derived_from__isnull=False).select_related("derived_from")
    return sorted(f"{one.called} of {one.derived_from.called}" for one in found)


def find(plan: ActionPlan, name: str) -> Action:
    found: Action = Action.objects.get(action_plan=plan, input_parameters__resource_name=name)
    return found


def test_plan_contains_the_actions_at_any_depth_and_changes_nothing_until_it_starts() -> None:
    stack = Stack.objects.create(name="shop", template=template(web=within(one=server(), two=server())))
    plan = proposed("create_stack", stack, plan_only=True)
    assert planned(plan) == [
        "create_resource one of create_resource web",
        "create_resource two of create_resource web",
        "create_resource web of create_stack shop",
    ]
    assert not stack.resources.exists()
    assert start(plan).state == "SUCCEEDED"
    assert len(servers()) == 2


def test_skipped_resource_is_not_changed_and_the_stack_names_it() -> None:
    stack = create(web=server(), database=server())
    for name in ("web", "database"):
        mark(part(stack, name))
    plan = proposed("update_stack", stack, plan_only=True)
    skip_action(find(plan, "web").uuid, "rosa")
    assert start(plan).state == "SUCCEEDED"
    assert (part(stack, "web").status, part(stack, "database").status) == ("CHECK_FAILED", "UPDATE_COMPLETE")
    assert reload(stack).status_reason == "UPDATE completed successfully, but for what was skipped: web"


def test_deletion_names_the_skipped_resource_of_a_nested_stack() -> None:
    stack = create(web=within(one=server()), database=server())
    plan = proposed("delete_stack", stack, plan_only=True)
    skip_action(find(plan, "one").uuid, "rosa")
    assert start(plan).state == "FAILED"
    words = f"Stack {inside(part(stack, 'web')).name} still has resources whose deletion was skipped: one"
    assert reload(stack).status_reason == f"Resource web: {words}"


def test_next_update_creates_a_skipped_resource() -> None:
    stack = Stack.objects.create(name="shop", template=template(web=within(one=server()), database=server()))
    plan = proposed("create_stack", stack, plan_only=True)
    skip_action(find(plan, "web").uuid, "rosa")
    assert start(plan).state == "SUCCEEDED"
    assert (part(stack, "web").status, len(servers())) == ("INIT_COMPLETE", 1)
    assert run("update_stack", stack).state == "SUCCEEDED"
    assert len(servers()) == 2
    assert Stack.objects.present().count() == 2


def test_stack_with_a_skipped_deletion_is_not_deleted() -> None:
    stack = create(web=server(), database=server())
    plan = proposed("delete_stack", stack, plan_only=True)
    skip_action(find(plan, "web").uuid, "rosa")
    assert start(plan).state == "FAILED"
    reason = "Stack shop still has resources whose deletion was skipped: web"
    assert (reload(stack).status, reload(stack).status_reason, list(servers())) == (
        "DELETE_FAILED",
        reason,
        ["shop-web"],
    )
    assert run("delete_stack", stack).state == "SUCCEEDED"


def test_second_plan_of_a_stack_cannot_start_while_the_first_is_running() -> None:
    stack = create(web=server())
    first, second = (proposed("update_stack", stack, plan_only=True, template=template()) for _ in range(2))
    reload(first).launch()
    with pytest.raises(
        Conflict, match=f"Stack shop: {described(find(first, 'shop'))} was started before, and has not"
    ):
        reload(second).launch()
    assert reload(second).state == "RECOMMENDED"


def test_second_plan_of_a_stack_cannot_start_after_the_first_has_changed_the_stack(
    cloud_admin: User,
) -> None:
    stack = create(web=server())
    first, second = (proposed("update_stack", stack, plan_only=True, template=template()) for _ in range(2))
    start(first)
    answer = Caller(cloud_admin, "1.12").post(f"/action_plans/{second.uuid}/start", {})
    one = find(first, "shop")
    first_one = f"action {one.uuid} (update_stack) of action plan {first.uuid}"
    words = f"{first_one} came first, and has changed it since this plan was made. Plan again."
    assert (answer.status_code, fault(answer)) == (409, f"Stack shop: {words}")
    assert reload(second).state == "RECOMMENDED"


def test_plan_cannot_start_after_a_replacement_of_a_group_of_the_stack() -> None:
    stack = create(web=group(2))
    plan = proposed("update_stack", stack, plan_only=True, template=template(web=group(3)))
    mark(part(stack, "web"))
    replacement = run("replace_resource", part(stack, "web")).actions.get(derived_from=None)
    with pytest.raises(Conflict, match=f"{described(replacement)} came first"):
        reload(plan).launch()


def test_started_plan_fails_without_changes_if_the_stack_was_changed_meanwhile() -> None:
    stack = create(web=server())
    plan = proposed("update_stack", stack, plan_only=True, template=template())
    reload(plan).launch()
    Stack.objects.filter(pk=stack.pk).update(revision=F("revision") + 1)
    run_waiting()
    assert reload(plan).state == "FAILED"
    assert "The stack was changed since this plan was made." in find(plan, "shop").status_message
    assert list(servers()) == ["shop-web"]
    assert reload(stack).status == "CREATE_COMPLETE"


def described(action: Action) -> str:
    return re.escape(f"action {action.uuid} ({action.action_type}) of action plan {action.action_plan.uuid}")


PATHS = [[], ["web"], ["web", "one"], ["workers"]]


@pytest.mark.parametrize("path", PATHS)
def test_plan_cannot_start_after_a_later_mark(cloud_admin: User, path: list[str]) -> None:
    stack, plan = planned_change()
    marked = marked_part(stack, path)
    mark(marked)
    answer = Caller(cloud_admin, "1.12").post(f"/action_plans/{plan.uuid}/start", {})
    words = f"Stack shop: {marked.name} was marked unhealthy since this plan was made. Plan again."
    assert (answer.status_code, fault(answer)) == (409, words)
    assert (reload(plan).state, reload(marked).status) == ("RECOMMENDED", "CHECK_FAILED")


@pytest.mark.parametrize("path", PATHS)
def test_plan_cannot_start_after_a_mark_was_withdrawn(cloud_admin: User, path: list[str]) -> None:
    stack, _ = planned_change()
    marked = marked_part(stack, path)
    mark(marked)
    plan, before = proposed("update_stack", stack, plan_only=True), servers()
    withdraw(marked)
    answer = Caller(cloud_admin, "1.12").post(f"/action_plans/{plan.uuid}/start", {})
    words = f"Stack shop: The mark of {marked.name} was withdrawn since this plan was made. Plan again."
    assert (answer.status_code, fault(answer)) == (409, words)
    assert (reload(plan).state, servers()) == ("RECOMMENDED", before)


@pytest.mark.parametrize("path", PATHS)
def test_started_plan_fails_without_changes_if_a_resource_is_marked_before_its_execution(path: list[str]) -> None:
    stack, plan = planned_change()
    reload(plan).launch()
    marked = marked_part(stack, path)
    mark(marked)
    run_waiting()
    assert reload(plan).state == "FAILED"
    assert f"{marked.name} was marked unhealthy since this plan was made." in find(plan, "shop").status_message
    assert reload(marked).status == "CHECK_FAILED"


@pytest.mark.parametrize("path", PATHS)
def test_started_plan_fails_without_changes_if_a_mark_is_withdrawn_before_its_execution(path: list[str]) -> None:
    stack, _ = planned_change()
    marked = marked_part(stack, path)
    mark(marked)
    plan, before = proposed("update_stack", stack, plan_only=True), servers()
    reload(plan).launch()
    withdraw(marked)
    run_waiting()
    assert reload(plan).state == "FAILED"
    words = f"The mark of {marked.name} was withdrawn since this plan was made."
    assert words in find(plan, "shop").status_message
    assert (reload(marked).status, servers()) == ("CHECK_COMPLETE", before)


def test_plan_can_start_if_a_mark_was_withdrawn_and_set_again() -> None:
    stack = create(web=server())
    mark(part(stack, "web"))
    plan = proposed("update_stack", stack, plan_only=True)
    withdraw(part(stack, "web"))
    mark(part(stack, "web"))
    assert start(plan).state == "SUCCEEDED"
    assert part(stack, "web").generation == 1


def test_plan_cannot_start_if_a_replaced_resource_was_marked_again() -> None:
    stack = create(web=server(), other=server())
    mark(part(stack, "web"))
    plan = proposed("update_stack", stack, plan_only=True)
    run("replace_resource", part(stack, "web"))
    mark(part(stack, "web"))
    with pytest.raises(Conflict, match="web was marked unhealthy since this plan was made"):
        reload(plan).launch()


def test_planned_deletion_can_start_after_a_later_mark() -> None:
    stack = create(web=server())
    plan = proposed("delete_stack", stack, plan_only=True)
    mark(part(stack, "web"))
    assert start(plan).state == "SUCCEEDED"
    assert not servers()


def test_continued_plan_cannot_start_after_the_mark_of_a_remaining_resource_was_withdrawn() -> None:
    stack, continued = continued_update()
    withdraw(part(stack, "database"))
    with pytest.raises(Conflict, match="The mark of database was withdrawn since this plan was made"):
        reload(continued).launch()


def test_continued_plan_cannot_start_after_its_stack_was_marked_again() -> None:
    stack, continued = continued_update()
    mark(reload(stack))
    with pytest.raises(Conflict, match="shop was marked unhealthy since this plan was made"):
        reload(continued).launch()


def planned_change() -> tuple[Stack, ActionPlan]:
    """Return a stack, and an unstarted plan that changes one of its resources."""
    stack = create(web=within(one=server()), workers=group(2))
    wanted = template(web=within(one=server("large")), workers=group(2))
    return stack, proposed("update_stack", stack, plan_only=True, template=wanted)


def continued_update() -> tuple[Stack, ActionPlan]:
    """Return a marked stack, and the plan that continues its failed update."""
    stack = create(web=server(), database=server())
    mark(reload(stack))
    make_flavor("huge", vcpus=10_000)
    plan = proposed("update_stack", stack, plan_only=True, template=template(web=server(), database=server("huge")))
    assert start(plan).state == "FAILED"
    continued = continue_plan(reload(plan))
    return stack, continued


def marked_part(stack: Stack, path: list[str]) -> Any:
    return part(stack, *path) if path else reload(stack)


def withdraw(record: Any) -> None:
    record = reload(record)
    record.mark_healthy("false alarm")
    record.save_state()


def test_batches_after_a_pause_are_derived_when_they_are_due() -> None:
    stack = create(web=group(2))
    wanted = template(web=group(2, server("large"), pause=3600))
    plan = proposed("update_stack", stack, plan_only=True, template=wanted)
    assert len(planned(plan)) == 2
    plan.launch()
    run_ready_actions()
    later = Action.objects.get(action_plan=plan, state="PENDING", due_time__isnull=False)
    assert later.due_time > timezone.now() + timedelta(minutes=50)
    Action.objects.filter(pk=later.pk).update(due_time=None)
    run_waiting()
    assert reload(plan).state == "SUCCEEDED"
    assert part(stack, "web").properties == wanted["resources"]["web"]["properties"]


def test_continued_plan_contains_only_the_remaining_actions() -> None:
    stack = create(web=group(2), database=server())
    members = names(inside(part(stack, "web")))
    mark(reload(stack))
    huge = make_flavor("huge", vcpus=10_000)
    wanted = template(web=group(2), database=server("huge"))
    plan = proposed("update_stack", stack, plan_only=True, template=wanted)
    assert start(plan).state == "FAILED"
    done = set(names(inside(part(stack, "web"))))
    assert not done.intersection(members)
    huge.vcpus = 1
    huge.save()
    continued = continue_plan(reload(plan))
    assert planned(continued) == ["replace_resource database of update_stack shop"]
    assert start(continued).state == "SUCCEEDED"
    assert set(names(inside(part(stack, "web")))) == done
    assert (reload(stack).status, part(stack, "database").generation) == ("UPDATE_COMPLETE", 1)
