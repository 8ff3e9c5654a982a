"""Instance actions: records of the operations on servers by users, by plans and on nodes of clusters."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from actions.engine import execution
from actions.graph.proposals import ProposedAction
from actions.models import Action, ActionEvent, InstanceAction
from actions.server_history import new_operation
from audits.purging import Purge
from cluster.models import Server
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.actions.types.stacks import builders as stacks
from tests.api import Caller
from tests.builders import make_flavor, make_member, make_node, make_server
from tests.plans.applier.test_commits import counted
from tests.plans.inline import run_waiting
from watcher_site.models import ProjectMember, Service
from watcher_site.request_context import CallingContext

pytestmark = pytest.mark.django_db


def run(action_type: str, **parameters: Any) -> Action:
    """Run a plan of one action to its end, started by a user."""
    plan = propose([ProposedAction(action_type, parameters)])
    plan.launch(CallingContext(user="rosa", request_id=f"req-{uuid4()}"))
    run_waiting()
    return plan.actions.get()


def recorded(server: Any) -> list[tuple[str, str, str | None]]:
    found = InstanceAction.objects.of(getattr(server, "uuid", server)).in_full()
    return [(one.verb, one.request_id, one.by) for one in found]


@pytest.mark.parametrize(
    ("action_type", "inputs", "verb"),
    [
        ("migrate", {"migration_type": "live", "source_node": "here"}, "live-migration"),
        ("migrate", {"migration_type": "cold", "source_node": "here"}, "migrate"),
        ("resize", {"flavor": "small"}, "resize"),
        ("stop", {}, "stop"),
        ("rebuild", {}, "rebuild"),
        ("reset_state", {"state": "error"}, "resetState"),
        ("delete_server", {}, "delete"),
    ],
)
def test_plan_action_is_recorded_with_its_verb_request_id_and_user(
    action_type: str, inputs: dict[str, Any], verb: str
) -> None:
    server = make_server(node=make_node("here"))
    make_node("there")
    make_flavor(disk=20)
    done = run(action_type, resource_id=str(server.uuid), **inputs)
    assert done.state == "SUCCEEDED"
    assert recorded(server) == [(verb, f"req-{done.uuid}", "rosa")]


@pytest.mark.parametrize("state", ["active", "stopped"])
def test_operation_starts_no_later_than_its_first_event(state: str) -> None:
    server = make_server(node=make_node("here"), state=state)
    make_node("there")
    run("migrate", resource_id=str(server.uuid), migration_type="live", source_node="here")
    first = ActionEvent.objects.order_by("start_time").first()
    assert (first.event, InstanceAction.objects.get().start_time) == ("pre_condition", first.start_time)


def test_action_that_failed_in_pre_condition_is_recorded_and_a_skipped_one_is_not() -> None:
    failing, gone = make_server(node=make_node("here"), state="stopped"), make_server("web-2")
    gone.deleted_at = gone.created_at
    gone.save()
    inputs = {"migration_type": "live", "source_node": "here"}
    assert run("migrate", resource_id=str(failing.uuid), **inputs).state == "FAILED"
    assert run("migrate", resource_id=str(gone.uuid), **inputs).state == "SKIPPED"
    assert [verb for verb, *_ in recorded(failing)] == ["live-migration"]
    assert recorded(gone) == []


def test_requested_operation_is_recorded_with_the_id_of_the_request(stranger: User) -> None:
    ProjectMember.objects.create(user=stranger, project_id="shop")
    server = make_server(node=make_node(), project_id="shop")
    answer = Caller(stranger, "1.8").post(f"/servers/{server.uuid}/action", {"rebuild": {}})
    request = answer.headers["x-openstack-request-id"]
    run_waiting()
    assert recorded(server) == [("rebuild", request, stranger.username)]
    found = InstanceAction.objects.get()
    assert (found.project_id, found.action.state) == ("shop", "SUCCEEDED")


def test_operation_of_a_plan_that_an_audit_started_has_an_id_of_its_own() -> None:
    plan = propose([ProposedAction("nop", {"message": "a"})])
    plan.launch(CallingContext(audit=str(uuid4()), request_id="req-1"))
    begun = plan.actions.get()
    [operation] = new_operation(begun, None, str(uuid4()), "create")
    assert operation.request_id == f"req-{begun.uuid}"


def test_deletion_of_a_server_without_host_is_recorded_without_an_action(cloud_admin: User) -> None:
    server = make_server(state="error")
    answer = Caller(cloud_admin, "1.8").delete(f"/servers/{server.uuid}")
    assert recorded(server) == [("delete", answer.headers["x-openstack-request-id"], "alice")]


def test_deferred_and_retried_action_is_one_operation() -> None:
    server = make_server(node=make_node("here"), task_state="migrating", operation_owner="somebody")
    assert run("stop", resource_id=str(server.uuid)).attempt > 1
    assert len(recorded(server)) == 1


def test_node_actions_are_recorded_for_the_server_of_the_node() -> None:
    make_node()
    node = make_member()
    created = run("NODE_CREATE", resource_id=str(node.uuid))
    node.refresh_from_db()
    first = node.physical_id
    recreated = run("NODE_RECOVER", resource_id=str(node.uuid), operation="RECREATE")
    node.refresh_from_db()
    second = node.physical_id
    run("NODE_RECOVER", resource_id=str(node.uuid), operation="REBOOT")
    run("NODE_DELETE", resource_id=str(node.uuid))
    assert created.state == recreated.state == "SUCCEEDED"
    assert [verb for verb, *_ in recorded(first)] == ["delete", "create"]
    assert [verb for verb, *_ in recorded(second)] == ["delete", "reboot", "create"]


def test_record_is_written_within_the_statement_that_starts_the_action() -> None:
    server = make_server(node=make_node("here"))
    plan = propose([ProposedAction("stop", {"resource_id": str(server.uuid)})])
    plan.launch()
    applier = Service.register(Service.APPLIER, "here")
    plan.begin(applier)
    plan.save_state()
    lease = PlanLease.of(plan, applier)
    lease.hold(has_begun=False)
    with counted() as statements:
        assert execution.execute(plan.actions.get(), lease)
    records = [sql for sql in statements if "actions_instanceaction" in sql]
    assert len(records) == 1
    assert records[0].startswith(("WITH", "INSERT"))


def test_record_is_kept_after_its_plan_until_the_server_is_purged() -> None:
    server = make_server(node=make_node("here"), state="stopped")
    run("migrate", resource_id=str(server.uuid), migration_type="live", source_node="here")
    ActionPlan.objects.get().remove()
    Purge(cutoff=ActionPlan.objects.get().deleted_at).remove()
    assert not ActionEvent.objects.exists()
    [kept] = InstanceAction.objects.of(server.uuid).in_full()
    assert (kept.by, kept.outcome, kept.action) == ("rosa", "Error", None)
    assert kept.kept_events[0]["event"] == "post_condition"
    assert "Live migration requires" in kept.kept_events[1]["details"]
    Server.objects.all().soft_delete()
    Purge(cutoff=Server.objects.get().deleted_at).remove()
    assert not InstanceAction.objects.exists()


def test_stack_actions_are_recorded_for_the_servers_of_the_resources() -> None:
    make_node(vcpus=1000, memory=10**6, disk=10**5)
    make_flavor("small")
    make_flavor("large", vcpus=2)
    stack = stacks.create_by_action(web=stacks.server(), inner=stacks.within(deep=stacks.server()))
    first, deep = stacks.part(stack, "web").physical_id, stacks.part(stack, "inner", "deep").physical_id
    changed = stacks.template(web=stacks.server("large"), inner=stacks.within(deep=stacks.server()))
    assert stacks.run("update_stack", stack, template=changed).state == "SUCCEEDED"
    stacks.mark(stacks.part(stack, "web"))
    run("replace_resource", resource_id=str(stacks.part(stack, "web").uuid))
    second = stacks.part(stack, "web").physical_id
    assert stacks.run("delete_stack", stack).state == "SUCCEEDED"
    assert [verb for verb, *_ in recorded(first)] == ["delete", "resize", "create"]
    assert [verb for verb, *_ in recorded(second)] == ["delete", "create"]
    assert [verb for verb, *_ in recorded(deep)] == ["delete", "create"]
    assert set(InstanceAction.objects.values_list("server_uuid", flat=True)) == {UUID(first), UUID(second), UUID(deep)}
