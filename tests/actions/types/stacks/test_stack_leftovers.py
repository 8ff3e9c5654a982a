"""Leftovers of failed stack operations are completed or removed by the next operation."""

from collections.abc import Callable
from typing import Any

import pytest

from actions.engine.execution import MAX_RECOVERIES, execute, recover
from actions.engine.timeouts import fail_hung_action
from actions.models import Action
from actions.types.base import LeaseLost
from actions.types.locking import take_lock
from actions.types.stacks.replace_resource import ReplaceResource
from actions.types.stacks.stacks import StackAction
from cluster.drivers.base import OperationFailed
from cluster.drivers.embedded import EmbeddedCloud
from cluster.models import Server, Stack
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.operations.base import RequestOptions
from plans.operations.stacks import update_stack
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
    template,
)
from tests.actions.types.stacks.test_planned_stacks import start
from tests.builders import make_flavor, make_node, make_plan
from tests.plans.inline import run_waiting
from watcher_site.models import Service
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def capacity(settings: Any) -> None:
    settings.ACTION_RETRY_INTERVAL = 0
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")
    make_flavor("large", vcpus=2)


def refuse(*arguments: Any, **options: Any) -> Any:
    raise OperationFailed("The cloud did not do it")


def replace_without_deletion(stack: Stack, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    """Replace a marked server while the cloud refuses to delete the former server."""
    mark(part(stack, "web"))
    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedCloud, "delete_server", refuse)
        plan = start(proposed("update_stack", stack, **options))
    assert plan.state == "FAILED"
    assert len(servers_of(stack)) == 2
    return plan


def servers_of(stack: Stack) -> list[Server]:
    return list(Server.objects.present().filter(name=f"{stack.name}-web"))


def test_next_update_deletes_a_former_server_that_could_not_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server())
    replace_without_deletion(stack, monkeypatch, plan_only=True)
    assert run("update_stack", stack).state == "SUCCEEDED"
    assert len(servers_of(stack)) == 1


def test_continued_plan_deletes_a_former_server_that_could_not_be_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server())
    plan = replace_without_deletion(stack, monkeypatch, plan_only=True)
    assert start(continue_plan(plan)).state == "SUCCEEDED"
    assert (len(servers_of(stack)), part(stack, "web").status) == (1, "UPDATE_COMPLETE")


def create_unrecorded_server(stack: Stack, monkeypatch: pytest.MonkeyPatch, **inputs: Any) -> None:
    """Create a new server that is not recorded, as if the response of the cloud was lost."""
    create_server = EmbeddedCloud.create_server

    def answer_too_late(self: Any, *arguments: Any) -> Any:
        create_server(self, *arguments)
        refuse()

    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedCloud, "create_server", answer_too_late)
        assert run("update_stack", stack, **inputs).state == "FAILED"
    assert len(servers_of(stack)) == 2


def test_unrecorded_server_is_not_used_for_another_flavor(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server())
    mark(part(stack, "web"))
    create_unrecorded_server(stack, monkeypatch, template=template(web=server("large")))
    assert run("update_stack", stack, template=template(web=server())).state == "SUCCEEDED"
    [one] = servers_of(stack)
    assert one.vcpus == 1


def test_unrecorded_server_is_deleted_if_no_replacement_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stack = create(web=server())
    create_unrecorded_server(stack, monkeypatch, template=template(web=server(availability_zone="nova")))
    assert run("update_stack", stack, template=template(web=server())).state == "SUCCEEDED"
    assert len(servers_of(stack)) == 1


def test_started_plan_fails_if_its_group_was_replaced_after_planning() -> None:
    stack = create(web=group(2))
    plan = proposed("update_stack", stack, plan_only=True, template=template(web=group(3)))
    mark(part(stack, "web"))
    assert run("replace_resource", part(stack, "web")).state == "SUCCEEDED"
    ActionPlan.objects.filter(pk=plan.pk).update(state="PENDING")  # As if it was started just before.
    run_waiting()
    assert "The stack was changed since this plan was made" in reload(plan).status_message
    assert len(servers()) == len(names(inside(part(stack, "web")))) == 2


@pytest.mark.parametrize("kind", ["update_stack", "replace_resource"])
def test_mark_is_restored_after_an_action_that_ended_without_a_status(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    stack = create(web=server())
    web = part(stack, "web")
    mark(web)
    with monkeypatch.context() as patched:
        patched.setattr(ReplaceResource, "act", refuse)
        patched.setattr(ReplaceResource, "fail", lambda self, reason: None)
        assert run(kind, stack if kind == "update_stack" else web).state == "FAILED"
    assert reload(web).status == "UPDATE_IN_PROGRESS"
    plan = ActionPlan.objects.get(uuid=update_stack(stack, options=RequestOptions(plan_only=True)).action_plan)
    assert (reload(web).status, reload(web).status_reason[:20]) == ("CHECK_FAILED", "It was not replaced:")
    assert start(plan).state == "SUCCEEDED"
    assert (reload(web).status, reload(web).generation) == ("UPDATE_COMPLETE", 1)


def test_planning_is_refused_while_the_stack_is_locked() -> None:
    stack = create(web=server())
    holder = Action.objects.create(action_plan=make_plan(), action_type="update_stack")
    take_lock(stack, str(holder.uuid))
    with pytest.raises(Conflict, match=r"Stack shop already has an action \(UPDATE\) in progress\."):
        update_stack(stack, options=RequestOptions(plan_only=True))


# Actions that the engine fails.


def fail_as_hung(action: Action, lease: PlanLease) -> None:
    fail_hung_action(action, lease, attempt=1, has_begun=True)


def fail_as_lost(action: Action, lease: PlanLease) -> None:
    for _ in range(MAX_RECOVERIES):
        action.events.create(event="recover")
    recover(reload(action), lease)


@pytest.mark.parametrize("end", [fail_as_hung, fail_as_lost])
@pytest.mark.parametrize(("kind", "verb"), [("update_stack", "UPDATE"), ("delete_stack", "DELETE")])
def test_stack_is_failed_with_a_hung_or_lost_action(
    monkeypatch: pytest.MonkeyPatch, kind: str, verb: str, end: Callable[[Action, PlanLease], None]
) -> None:
    stack = create(web=server())
    action, lease = begun(proposed(kind, stack))
    with monkeypatch.context() as patched:
        patched.setattr(StackAction, "go_on", raise_lease_lost)
        execute(action, lease)
    assert reload(stack).status == f"{verb}_IN_PROGRESS"
    end(action, lease)
    assert reload(action).state == "FAILED"
    assert (reload(stack).status, reload(stack).status_reason) == (f"{verb}_FAILED", reload(action).outputs["error"])


def test_mark_is_restored_with_a_hung_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server())
    mark(part(stack, "web"))
    action, lease = begun(proposed("replace_resource", part(stack, "web")))
    with monkeypatch.context() as patched:
        patched.setattr(ReplaceResource, "act", raise_lease_lost)
        execute(action, lease)
    assert part(stack, "web").status == "UPDATE_IN_PROGRESS"
    fail_as_hung(action, lease)
    assert part(stack, "web").status == "CHECK_FAILED"


def test_hung_action_fails_if_its_type_cannot_update_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = create(web=server())
    action, lease = begun(proposed("update_stack", stack))
    with monkeypatch.context() as patched:
        patched.setattr(StackAction, "go_on", raise_lease_lost)
        execute(action, lease)
    monkeypatch.setattr(StackAction, "be_given_up", refuse)
    fail_as_hung(action, lease)
    assert (reload(action).state, reload(stack).status) == ("FAILED", "UPDATE_IN_PROGRESS")


def raise_lease_lost(*arguments: Any) -> Any:
    raise LeaseLost


def begun(plan: ActionPlan) -> tuple[Action, PlanLease]:
    """Return the only action of a plan, and the lease of its applier."""
    applier = Service.register(Service.APPLIER, "here")
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING", applier=applier)
    return plan.actions.get(), PlanLease.of(reload(plan), applier)
