"""Servers of stacks without a valid host stay PENDING, and their resources wait, with ``USE_PENDING_STATE``."""

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
from tests.actions.types.stacks.builders import create, mark, part, proposed, reload, server, template
from tests.api import Caller
from tests.builders import make_flavor, make_node
from tests.conftest import person
from tests.plans.inline import run_waiting
from watcher_site.accounts.projects import add_member
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def full_cloud(settings: Any) -> None:
    """Create capacity for small servers, but not for a huge one."""
    settings.USE_PENDING_STATE = True
    make_node(vcpus=8, memory=8000, disk=800)
    make_flavor("small")
    make_flavor("huge", vcpus=16)


@pytest.fixture
def stack() -> Stack:
    """Return a stack in creation whose server is PENDING."""
    made = Stack.objects.create(name="shop", template=template(web=server("huge")))
    proposed("create_stack", made)
    run_ready_actions()
    return made


def plan_of(stack: Stack) -> ActionPlan:
    return Action.objects.filter(target=str(stack.uuid)).latest("pk").action_plan


def pending_server() -> Server:
    found: Server = Server.objects.waiting().get()
    return found


def run_deferred_actions() -> None:
    """Make the deferred actions due, and run all ready actions."""
    Action.objects.exclude(due_time=None).update(due_time=timezone.now())
    run_ready_actions()


def status_of(resource: StackResource) -> tuple[str, str]:
    return reload(resource).status, reload(resource).status_reason


def test_server_without_a_valid_host_is_pending_and_its_stack_in_progress(stack: Stack) -> None:
    web = part(stack, "web")
    assert (reload(stack).status, web.status, web.physical_id) == (
        "CREATE_IN_PROGRESS",
        "CREATE_IN_PROGRESS",
        str(pending_server().uuid),
    )
    action = Action.objects.get(action_type="create_resource")
    assert (action.state, action.retries) == ("PENDING", 0)
    assert action.status_message == f"Action is tried again later: Instance {pending_server().uuid} waits for capacity"


def test_creation_fails_at_once_without_the_option(settings: Any) -> None:
    settings.USE_PENDING_STATE = False
    stack = Stack.objects.create(name="shop", template=template(web=server("huge")))
    proposed("create_stack", stack)
    run_waiting()
    assert (reload(stack).status, Server.objects.present().count()) == ("CREATE_FAILED", 0)


def test_pending_server_becomes_the_server_of_the_resource_when_it_is_built(stack: Stack) -> None:
    waited = pending_server()
    make_node("roomy", vcpus=32, memory=32000, disk=3200)
    cloud().build_server(str(waited.uuid))
    run_deferred_actions()
    assert (plan_of(stack).state, reload(stack).status) == ("SUCCEEDED", "CREATE_COMPLETE")
    assert part(stack, "web").physical_id == str(waited.uuid)
    assert Server.objects.present().count() == 1


def test_wait_for_capacity_does_not_count_for_the_maximum_of_retries(stack: Stack, settings: Any) -> None:
    for _ in range(settings.ACTION_RETRIES + 2):
        run_deferred_actions()
    assert (part(stack, "web").status, Server.objects.present().count()) == ("CREATE_IN_PROGRESS", 1)


def test_resource_fails_with_the_reason_of_its_reset_server_and_deletes_it(stack: Stack) -> None:
    cloud().reset_state(str(pending_server().uuid), "error", reason="No capacity was provided.")
    run_deferred_actions()
    assert status_of(part(stack, "web")) == ("CREATE_FAILED", "No capacity was provided.")
    assert (reload(stack).status, Server.objects.present().count()) == ("CREATE_FAILED", 0)


def test_resource_fails_if_its_pending_server_was_deleted(stack: Stack) -> None:
    waited = pending_server()
    delete_unplaced(waited)
    run_deferred_actions()
    words = f"Instance {waited.uuid} no longer exists: it was deleted while it waited for capacity"
    assert status_of(part(stack, "web")) == ("CREATE_FAILED", words)
    assert not Server.objects.present().exists()


def test_timeout_fails_the_stack_and_deletes_the_pending_server(stack: Stack) -> None:
    Action.objects.exclude(waits_until=None).update(waits_until=timezone.now() - timedelta(seconds=1))
    run_ready_actions()
    assert plan_of(stack).state == "FAILED"
    assert (reload(stack).status, part(stack, "web").status) == ("CREATE_FAILED", "CREATE_FAILED")
    assert not Server.objects.present().exists()


def test_cancelled_creation_fails_the_stack_and_deletes_the_pending_server(stack: Stack) -> None:
    action = Action.objects.get(action_type="create_stack")
    signal_action(action.uuid, Action.Signal.CANCEL, "rosa")
    run_ready_actions()
    assert (reload(action).state, reload(stack).status, part(stack, "web").status) == (
        "CANCELLED",
        "CREATE_FAILED",
        "CREATE_FAILED",
    )
    assert not Server.objects.present().exists()


def member_of_acme() -> Caller:
    user = person("mia")
    add_member("mia", "acme")
    return Caller(user, "1.11")


def test_deletion_by_the_owner_cancels_the_waiting_creation() -> None:
    member = member_of_acme()
    created = member.post("/stacks", {"name": "shop", "template": template(web=server("huge"), other=server())})
    run_ready_actions()
    stack = Stack.objects.get(uuid=created.json()["stack"])
    assert Server.objects.waiting().exists()
    answer = member.delete(f"/stacks/shop/{stack.uuid}")
    assert answer.status_code == 202, answer.content
    run_ready_actions()
    run_deferred_actions()
    assert (reload(stack).status, Server.objects.present().exists()) == ("DELETE_COMPLETE", False)
    states = dict(Action.objects.filter(derived_from=None).values_list("action_type", "state"))
    assert states == {"create_stack": "CANCELLED", "delete_stack": "SUCCEEDED"}


def test_deletion_cancels_a_waiting_replacement() -> None:
    stack = create(web=server())
    plan = waiting_replacement(stack)
    assert Server.objects.waiting().exists()
    delete_stack(stack)
    run_ready_actions()
    run_deferred_actions()
    assert (reload(plan).state, reload(stack).status) == ("CANCELLED", "DELETE_COMPLETE")
    assert not Server.objects.present().exists()


def test_deletion_is_refused_while_an_action_runs(stack: Stack) -> None:
    Action.objects.filter(action_type="create_resource").update(state="ONGOING")
    with pytest.raises(Conflict, match="conflicts with the following action"):
        delete_stack(stack)
    assert Action.objects.get(action_type="create_stack").control is None


def test_excluded_deletion_does_not_cancel_the_waiting_operation(stack: Stack) -> None:
    make_exclusion(action_types=["delete_stack"])
    with pytest.raises(Conflict):
        delete_stack(stack)
    assert Action.objects.get(action_type="create_stack").state == "PENDING"


def test_waiting_replacement_keeps_the_former_server() -> None:
    stack = create(web=server())
    former = part(stack, "web").physical_id
    mark(part(stack, "web"))
    proposed("update_stack", stack, template=template(web=server("huge")))
    run_ready_actions()
    assert (part(stack, "web").status, part(stack, "web").physical_id) == ("UPDATE_IN_PROGRESS", former)
    make_node("roomy", vcpus=32, memory=32000, disk=3200)
    cloud().build_server(waited := str(pending_server().uuid))
    run_deferred_actions()
    assert (reload(stack).status, part(stack, "web").physical_id) == ("UPDATE_COMPLETE", waited)
    assert [str(one.uuid) for one in Server.objects.present()] == [waited]


def waiting_replacement(stack: Stack) -> ActionPlan:
    """Return the plan of a replacement whose new, larger server is PENDING."""
    Stack.objects.filter(pk=stack.pk).update(template=template(web=server("huge")))
    mark(part(stack, "web"))
    plan = proposed("replace_resource", part(stack, "web"))
    run_ready_actions()
    return plan


def test_replacement_rebuilds_in_place_instead_of_waiting() -> None:
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
    reload(plan).abandon("rosa")


@pytest.mark.parametrize("cancel", [cancel_action, cancel_plan])
def test_cancelled_waiting_replacement_keeps_the_mark_and_deletes_the_pending_server(
    cancel: Callable[[ActionPlan], None],
) -> None:
    stack = create(web=server())
    plan = waiting_replacement(stack)
    assert (part(stack, "web").status, Server.objects.waiting().count()) == ("UPDATE_IN_PROGRESS", 1)
    cancel(plan)
    run_ready_actions()
    assert (part(stack, "web").status, Server.objects.waiting().count()) == ("CHECK_FAILED", 0)
