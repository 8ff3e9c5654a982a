"""A stack's server that finds no host is PENDING, and its resource waits with it, where the site has servers wait."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from actions.models import Action
from actions.operations.signals import signal_action
from cluster.drivers.base import cloud
from cluster.models import ComputeNode, Server, Stack, StackResource
from cluster.operations.servers import delete_unplaced
from plans.models import ActionPlan
from plans.operations.stacks import delete_stack
from tests.actions.exclusions.builders import make_exclusion
from tests.actions.types.clusters.test_cluster_updates import run_ready_actions
from tests.actions.types.stacks.builders import again, create, mark, part, proposed, server, template
from tests.api import Caller
from tests.builders import make_flavor, make_node
from tests.conftest import person
from tests.plans.inline import run_waiting
from watcher_site.accounts.projects import add_member
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def full_cloud(settings: Any) -> None:
    """There is capacity for small servers, but not for a huge one."""
    settings.USE_PENDING_STATE = True
    make_node(vcpus=8, memory=8000, disk=800)
    make_flavor("small")
    make_flavor("huge", vcpus=16)


@pytest.fixture
def stack() -> Stack:
    """One that is being created, and whose server waits for capacity."""
    made = Stack.objects.create(name="shop", template=template(web=server("huge")))
    proposed("create_stack", made)
    run_ready_actions()
    return made


def plan_of(stack: Stack) -> ActionPlan:
    return Action.objects.filter(target=str(stack.uuid)).latest("pk").action_plan


def waiting() -> Server:
    found: Server = Server.objects.waiting().get()
    return found


def look_again() -> None:
    """End the pause of deferred actions, and run the actions that can begin then."""
    Action.objects.exclude(due_time=None).update(due_time=timezone.now())
    run_ready_actions()


def story(resource: StackResource) -> tuple[str, str]:
    return again(resource).status, again(resource).status_reason


def test_a_server_that_finds_no_host_is_pending_and_its_resource_and_its_stack_are_at_work(stack: Stack) -> None:
    web = part(stack, "web")
    assert (again(stack).status, web.status, web.physical_id) == (
        "CREATE_IN_PROGRESS",
        "CREATE_IN_PROGRESS",
        str(waiting().uuid),
    )
    action = Action.objects.get(action_type="create_resource")
    assert (action.state, action.retries) == ("PENDING", 0)
    assert action.status_message == f"Action is tried again later: Instance {waiting().uuid} waits for capacity"


def test_without_the_option_it_fails_at_once_and_leaves_no_server(settings: Any) -> None:
    settings.USE_PENDING_STATE = False
    stack = Stack.objects.create(name="shop", template=template(web=server("huge")))
    proposed("create_stack", stack)
    run_waiting()
    assert (again(stack).status, Server.objects.present().count()) == ("CREATE_FAILED", 0)


def test_once_there_is_capacity_the_server_that_waited_is_that_of_the_resource(stack: Stack) -> None:
    waited = waiting()
    make_node("roomy", vcpus=32, memory=32000, disk=3200)
    cloud().build_server(str(waited.uuid))
    look_again()
    assert (plan_of(stack).state, again(stack).status) == ("SUCCEEDED", "CREATE_COMPLETE")
    assert part(stack, "web").physical_id == str(waited.uuid)
    assert Server.objects.present().count() == 1


def test_however_often_it_is_looked_at_it_does_not_count_as_deferred(stack: Stack, settings: Any) -> None:
    for _ in range(settings.ACTION_RETRIES + 2):
        look_again()
    assert (part(stack, "web").status, Server.objects.present().count()) == ("CREATE_IN_PROGRESS", 1)


def test_where_no_capacity_becomes_free_the_resource_fails_for_that_reason_and_the_server_goes(stack: Stack) -> None:
    cloud().reset_state(str(waiting().uuid), "error", reason="No capacity was provided.")
    look_again()
    assert story(part(stack, "web")) == ("CREATE_FAILED", "No capacity was provided.")
    assert (again(stack).status, Server.objects.present().count()) == ("CREATE_FAILED", 0)


def test_a_server_that_its_owner_deletes_while_it_waits_is_not_made_again(stack: Stack) -> None:
    waited = waiting()
    delete_unplaced(waited)
    look_again()
    words = f"Instance {waited.uuid} no longer exists: it was deleted while it waited for capacity"
    assert story(part(stack, "web")) == ("CREATE_FAILED", words)
    assert not Server.objects.present().exists()


def test_when_its_time_is_over_the_stack_and_the_resource_fail_and_nothing_waits_any_more(stack: Stack) -> None:
    Action.objects.exclude(waits_until=None).update(waits_until=timezone.now() - timedelta(seconds=1))
    run_ready_actions()
    assert plan_of(stack).state == "FAILED"
    assert (again(stack).status, part(stack, "web").status) == ("CREATE_FAILED", "CREATE_FAILED")
    assert not Server.objects.present().exists()


def test_a_creation_that_is_cancelled_while_its_server_waits_says_so_and_nothing_waits_any_more(stack: Stack) -> None:
    action = Action.objects.get(action_type="create_stack")
    signal_action(action.uuid, Action.Signal.CANCEL, "rosa")
    run_ready_actions()
    assert (again(action).state, again(stack).status, part(stack, "web").status) == (
        "CANCELLED",
        "CREATE_FAILED",
        "CREATE_FAILED",
    )
    assert not Server.objects.present().exists()


def member_of_acme() -> Caller:
    user = person("mia")
    add_member("mia", "acme")
    return Caller(user, "1.11")


def test_the_owner_deletes_a_stack_that_waits_and_the_waiting_action_is_cancelled_first() -> None:
    member = member_of_acme()
    created = member.post("/stacks", {"name": "shop", "template": template(web=server("huge"), other=server())})
    run_ready_actions()
    stack = Stack.objects.get(uuid=created.json()["stack"])
    assert Server.objects.waiting().exists()
    answer = member.delete(f"/stacks/shop/{stack.uuid}")
    assert answer.status_code == 202, answer.content
    run_ready_actions()
    look_again()
    assert (again(stack).status, Server.objects.present().exists()) == ("DELETE_COMPLETE", False)
    states = dict(Action.objects.filter(derived_from=None).values_list("action_type", "state"))
    assert states == {"create_stack": "CANCELLED", "delete_stack": "SUCCEEDED"}


def test_a_stack_is_deleted_while_the_replacement_of_one_of_its_resources_alone_waits() -> None:
    stack = create(web=server())
    plan = waiting_replacement(stack)
    assert Server.objects.waiting().exists()
    delete_stack(stack)
    run_ready_actions()
    look_again()
    assert (again(plan).state, again(stack).status) == ("CANCELLED", "DELETE_COMPLETE")
    assert not Server.objects.present().exists()


def test_a_stack_on_which_an_action_runs_is_not_deleted(stack: Stack) -> None:
    Action.objects.filter(action_type="create_resource").update(state="ONGOING")
    with pytest.raises(Conflict, match="conflicts with the following action"):
        delete_stack(stack)
    assert Action.objects.get(action_type="create_stack").control is None


def test_an_operation_that_waits_goes_on_if_a_rule_excludes_the_deletion_of_its_stack(stack: Stack) -> None:
    make_exclusion(action_types=["delete_stack"])
    with pytest.raises(Conflict):
        delete_stack(stack)
    assert Action.objects.get(action_type="create_stack").state == "PENDING"


def test_a_replacement_that_waits_for_capacity_leaves_the_former_server_where_it_is() -> None:
    stack = create(web=server())
    former = part(stack, "web").physical_id
    mark(part(stack, "web"))
    proposed("update_stack", stack, template=template(web=server("huge")))
    run_ready_actions()
    assert (part(stack, "web").status, part(stack, "web").physical_id) == ("UPDATE_IN_PROGRESS", former)
    make_node("roomy", vcpus=32, memory=32000, disk=3200)
    cloud().build_server(waited := str(waiting().uuid))
    look_again()
    assert (again(stack).status, part(stack, "web").physical_id) == ("UPDATE_COMPLETE", waited)
    assert [str(one.uuid) for one in Server.objects.present()] == [waited]


def waiting_replacement(stack: Stack) -> ActionPlan:
    """Return the plan of a single replacement whose new, larger server waits."""
    Stack.objects.filter(pk=stack.pk).update(template=template(web=server("huge")))
    mark(part(stack, "web"))
    plan = proposed("replace_resource", part(stack, "web"))
    run_ready_actions()
    return plan


def test_a_replacement_does_not_wait_where_the_former_server_can_be_rebuilt_in_its_place() -> None:
    stack = create(web=server())
    former = part(stack, "web").physical_id
    mark(part(stack, "web"))
    ComputeNode.objects.update(status="disabled")
    proposed("update_stack", stack)
    run_ready_actions()
    assert (part(stack, "web").status, part(stack, "web").physical_id) == ("UPDATE_COMPLETE", former)
    assert not Server.objects.waiting().exists()


def cancel_action(plan: ActionPlan) -> None:
    signal_action(plan.actions.get().uuid, Action.Signal.CANCEL, "rosa")


def cancel_plan(plan: ActionPlan) -> None:
    again(plan).abandon("rosa")


@pytest.mark.parametrize("cancel", [cancel_action, cancel_plan])
def test_a_replacement_alone_that_is_cancelled_while_it_waits_leaves_the_mark_and_nothing_that_waits(
    cancel: Callable[[ActionPlan], None],
) -> None:
    stack = create(web=server())
    plan = waiting_replacement(stack)
    assert (part(stack, "web").status, Server.objects.waiting().count()) == ("UPDATE_IN_PROGRESS", 1)
    cancel(plan)
    run_ready_actions()
    assert (part(stack, "web").status, Server.objects.waiting().count()) == ("CHECK_FAILED", 0)
