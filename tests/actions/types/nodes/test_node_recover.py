"""NODE_RECOVER on the embedded cloud: skips, failures, results and the recovery of interrupted actions."""

from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from actions.types.base import DONE, ActionContext, ActionFailed, ActionSkipException, Recovery, make
from actions.types.nodes.node_recover import NodeRecover
from cluster.drivers.base import CloudBusy, NoValidHost, OperationFailed, ServerNotFound, cloud
from cluster.drivers.ownership import acting_for
from cluster.models import ComputeNode, Flavor, Node, Server
from tests.actions.types.nodes.test_nodes import Killed, action, die, reload, status_of
from tests.builders import make_member, make_node

pytestmark = pytest.mark.django_db


def derived(**options: Any) -> ActionContext:
    """Return the context of a derived action, which takes no locks."""
    return ActionContext(is_derived=True, **options)


def recovery(node: Node, context: ActionContext | None = None, **inputs: Any) -> NodeRecover:
    made = make("NODE_RECOVER", {"resource_id": str(node.uuid), **inputs}, context or derived())
    assert isinstance(made, NodeRecover)
    return made


@pytest.fixture
def node() -> Node:
    make_node()
    return make_member()


@pytest.fixture
def broken(node: Node) -> Node:
    """Return a node in ERROR whose server does not run."""
    action("NODE_CREATE", node).execute()
    cloud().stop(str(reload(node).physical_id))
    action("NODE_CHECK", node).execute()
    return reload(node)


def servers_of(node: Node) -> list[tuple[str, bool]]:
    """Return the state of each server, deleted servers included, and whether it is deleted."""
    return [(server.state, server.deleted_at is not None) for server in Server.objects.order_by("pk")]


def test_deleted_node_is_skipped() -> None:
    with pytest.raises(ActionSkipException, match="not found"):
        action("NODE_RECOVER", str(uuid4())).pre_condition()


@pytest.mark.parametrize("inputs", [{"operation": "EVACUATE"}, {"check": "yes"}, {"flavor": "x"}, {"operation": None}])
def test_invalid_inputs_are_refused(inputs: dict[str, Any]) -> None:
    with pytest.raises(ActionFailed, match="Invalid input parameters"):
        recovery(Node(uuid=uuid4()), **inputs)


def test_server_is_replaced(broken: Node) -> None:
    context = derived()
    recover = recovery(broken, context)
    recover.pre_condition()
    assert recover.execute() == DONE
    assert servers_of(broken) == [("stopped", True), ("active", False)]
    server = Server.objects.present().get()
    assert (status_of(broken), reload(broken).physical_id) == (("ACTIVE", "Recovery succeeded"), server.uuid)
    assert context.outputs == {"operation": "RECREATE", "status": "ACTIVE", "physical_id": str(server.uuid)}


@pytest.mark.parametrize(("state", "expected"), [("up", "compute1"), ("down", "other")])
def test_new_server_is_placed_on_the_same_host_if_the_host_is_up(broken: Node, state: str, expected: str) -> None:
    Node.objects.filter(pk=broken.pk).update(data={"placement": {"host": "compute1"}})
    ComputeNode.objects.update(state=state)
    make_node("other", memory=10**6)
    recovery(broken).execute()
    assert Server.objects.present().get().node.hostname == expected


def test_node_can_be_recovered_repeatedly(broken: Node) -> None:
    recovery(broken).execute()
    recovery(broken).execute()
    assert [deleted for _, deleted in servers_of(broken)] == [True, True, False]


def test_node_without_a_server_gets_one(node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(status="ERROR")
    recovery(node).pre_condition()
    recovery(node).execute()
    assert (reload(node).status, servers_of(node)) == ("ACTIVE", [("active", False)])


def test_unrecorded_server_is_deleted_when_a_new_one_is_created(node: Node) -> None:
    with acting_for("action", 1), pytest.raises(Killed):
        action("NODE_CREATE", node, checkpoint=die).execute()
    Node.objects.filter(pk=node.pk).update(status="ERROR")
    recovery(node).execute()
    assert servers_of(node) == [("building", True), ("active", False)]


@pytest.mark.parametrize("operation", ["REBOOT", "REBUILD"])
def test_server_is_rebooted_or_rebuilt_if_requested(broken: Node, operation: str) -> None:
    context = derived()
    recovery(broken, context, operation=operation).execute()
    assert servers_of(broken) == [("active", False)]
    assert status_of(broken) == ("ACTIVE", "Recovery succeeded")
    assert context.outputs == {"operation": operation, "status": "ACTIVE", "physical_id": str(broken.physical_id)}


@pytest.mark.parametrize("operation", ["REBOOT", "REBUILD"])
def test_reboot_and_rebuild_of_a_deleted_server_fail(broken: Node, operation: str) -> None:
    cloud().delete_server(str(broken.physical_id))
    with pytest.raises(ServerNotFound):
        recovery(broken, operation=operation).execute()
    assert status_of(broken) == ("ERROR", f"Instance {broken.physical_id} not found")


@pytest.mark.parametrize("operation", ["REBOOT", "REBUILD"])
def test_interrupted_reboot_or_rebuild_is_completed_by_the_next_attempt(broken: Node, operation: str) -> None:
    context = derived(checkpoint=die)
    with acting_for("action", 1), pytest.raises(Killed):
        recovery(broken, context, operation=operation).execute()
    successor = recovery(broken, derived(data=context.data), operation=operation)
    with acting_for("action", 2):
        assert successor.recover() is Recovery.AGAIN
        successor.execute()
    assert (reload(broken).status, servers_of(broken)) == ("ACTIVE", [("active", False)])


@pytest.mark.parametrize("operation", ["REBOOT", "REBUILD"])
def test_abort_of_a_reboot_or_rebuild_frees_the_server(broken: Node, operation: str) -> None:
    context = derived(checkpoint=die)
    with acting_for("action", 1), pytest.raises(Killed):
        recovery(broken, context, operation=operation).execute()
    with acting_for("action", 1):
        assert recovery(broken, derived(data=context.data), operation=operation).abort()
    assert Server.objects.present().get().task_state is None
    assert status_of(broken) == ("ERROR", "Its recovery was interrupted")


@pytest.mark.parametrize("operation", ["REBOOT", "REBUILD"])
def test_node_without_a_server_cannot_be_rebooted_or_rebuilt(node: Node, operation: str) -> None:
    Node.objects.filter(pk=node.pk).update(status="ERROR")
    with pytest.raises(ActionFailed, match=f"has no server: {operation} is not possible, RECREATE is"):
        recovery(node, operation=operation).pre_condition()


def test_health_policy_sets_the_default_operation(broken: Node) -> None:
    decided = derived(data={"health": {"recover_action": "REBUILD"}})
    assert recovery(broken, decided).operation == "REBUILD"
    assert recovery(broken, decided, operation="RECREATE").operation == "RECREATE"


def test_check_keeps_a_running_server(broken: Node) -> None:
    cloud().start(str(broken.physical_id))
    context = derived()
    assert recovery(broken, context, check=True).execute() == DONE
    assert servers_of(broken) == [("active", False)]
    assert context.outputs == {"operation": None, "status": "ACTIVE", "physical_id": str(broken.physical_id)}
    assert status_of(broken) == ("ACTIVE", "Check: Node is ACTIVE.")


def test_check_replaces_a_server_that_does_not_run(broken: Node) -> None:
    Node.objects.filter(pk=broken.pk).update(status="ACTIVE")
    recovery(broken, check=True).execute()
    assert servers_of(broken) == [("stopped", True), ("active", False)]


def test_node_in_deletion_cannot_be_recovered(broken: Node) -> None:
    Node.objects.filter(pk=broken.pk).update(status="DELETING")
    with pytest.raises(ActionFailed, match="is DELETING: something else is done to it"):
        recovery(broken).execute()
    assert servers_of(broken) == [("stopped", False)]


def test_node_without_capacity_is_in_error_and_can_be_recovered_later(broken: Node) -> None:
    Flavor.objects.update(vcpus=99)
    with pytest.raises(NoValidHost):
        recovery(broken).execute()
    assert status_of(broken) == ("ERROR", "No valid host was found. There are not enough hosts available.")
    assert reload(broken).physical_id is None
    Flavor.objects.update(vcpus=1)
    recovery(broken).execute()
    assert (reload(broken).status, servers_of(broken)) == ("ACTIVE", [("stopped", True), ("active", False)])


def test_failed_deletion_of_the_old_server_leaves_the_node_in_error_with_its_server(
    broken: Node, settings: Settings
) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    with pytest.raises(OperationFailed):
        recovery(broken).execute()
    assert (reload(broken).status, reload(broken).physical_id) == ("ERROR", broken.physical_id)


def test_interrupted_recreation_is_completed_with_the_server_already_created(broken: Node) -> None:
    context = derived(checkpoint=die)
    with acting_for("action", 1), pytest.raises(Killed):
        recovery(broken, context).execute()
    assert status_of(broken) == ("RECOVERING", "Recovery in progress")
    successor = recovery(broken, derived(data=context.data))
    with acting_for("action", 2):
        assert successor.recover() is Recovery.AGAIN
        successor.execute()
    assert servers_of(broken) == [("stopped", True), ("active", False)]


def test_completed_recovery_without_a_recorded_outcome_is_not_repeated(broken: Node) -> None:
    context = derived()
    recovery(broken, context).execute()
    successor = recovery(broken, derived(data=context.data))
    assert successor.recover() is Recovery.DONE
    assert successor.context.outputs == context.outputs


def test_unstarted_recovery_is_executed_for_an_active_node(broken: Node) -> None:
    Node.objects.filter(pk=broken.pk).update(status="ACTIVE")
    assert recovery(broken).recover() is Recovery.AGAIN


def test_recovery_that_exceeds_its_retries_leaves_the_node_in_error(broken: Node) -> None:
    context = derived(checkpoint=die)
    with acting_for("action", 1), pytest.raises(Killed):
        recovery(broken, context).execute()
    late = recovery(broken, derived(data=context.data))
    with acting_for("another"), pytest.raises(CloudBusy):
        late.execute()
    late.post_condition()
    assert status_of(broken) == ("ERROR", "Its server was not recovered")


def test_abort_of_a_recovery_deletes_the_unfinished_server(broken: Node) -> None:
    context = derived(checkpoint=die)
    with acting_for("action", 1), pytest.raises(Killed):
        recovery(broken, context).execute()
    assert recovery(broken, derived(data=context.data)).abort()
    assert servers_of(broken) == [("stopped", True), ("building", True)]
    assert status_of(broken) == ("ERROR", "Its recovery was interrupted")


def test_completed_recovery_can_be_neither_aborted_nor_reverted(broken: Node) -> None:
    recovery(broken).execute()
    assert not recovery(broken).abort()
    with pytest.raises(ActionFailed, match="can not be reverted"):
        recovery(broken).revert()
