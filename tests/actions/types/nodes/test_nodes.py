"""NODE_CREATE, NODE_DELETE and NODE_CHECK on the embedded cloud: skips, failures, results and reverts."""

from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from actions.types.base import DONE, ActionContext, ActionFailed, ActionSkipException, ActionType, Recovery, make
from cluster.drivers.base import CloudBusy, FlavorNotFound, NoValidHost, OperationFailed, cloud
from cluster.drivers.ownership import acting_for
from cluster.models import Flavor, Node, Server
from tests.builders import make_member, make_node, make_profile, make_server

pytestmark = pytest.mark.django_db


class Killed(BaseException):
    pass


def die() -> None:
    raise Killed


def action(kind: str, node: Node | str, **context: Any) -> ActionType:
    """Return a derived action, which takes no locks."""
    return make(kind, {"resource_id": str(getattr(node, "uuid", node))}, ActionContext(is_derived=True, **context))


def reload(node: Node) -> Node:
    return Node.objects.get(pk=node.pk)


def status_of(node: Node) -> tuple[str, str | None]:
    return reload(node).status, reload(node).status_reason


@pytest.fixture
def node() -> Node:
    make_node()
    return make_member(profile=make_profile(spec={"flavor": "small", "image": "x", "metadata": {"role": "web"}}))


@pytest.fixture
def created(node: Node) -> Node:
    action("NODE_CREATE", node).execute()
    return reload(node)


def interrupt(kind: str, node: Node) -> None:
    """Execute an action that is killed at its first checkpoint."""
    with acting_for("action", 1), pytest.raises(Killed):
        action(kind, node, checkpoint=die).execute()


# All types


@pytest.mark.parametrize("kind", ["NODE_CREATE", "NODE_DELETE", "NODE_CHECK"])
def test_deleted_node_is_skipped(kind: str) -> None:
    uuid = str(uuid4())
    with pytest.raises(ActionSkipException, match=f"Node {uuid} not found"):
        action(kind, uuid).pre_condition()


@pytest.mark.parametrize("kind", ["NODE_CREATE", "NODE_DELETE", "NODE_CHECK"])
def test_target_is_the_node(kind: str, node: Node) -> None:
    assert type(action(kind, node)).affected({"resource_id": str(node.uuid)}).target == str(node.uuid)


@pytest.mark.parametrize("kind", ["NODE_CREATE", "NODE_DELETE", "NODE_CHECK"])
@pytest.mark.parametrize("parameters", [{}, {"resource_id": "web"}, {"resource_id": str(uuid4()), "flavor": "x"}])
def test_invalid_parameters_are_refused(kind: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(ActionFailed, match="Invalid input parameters"):
        make(kind, parameters, ActionContext())


# NODE_CREATE


def test_server_is_created_from_the_profile(node: Node) -> None:
    outputs: dict[str, Any] = {}
    create = action("NODE_CREATE", node, outputs=outputs)
    create.pre_condition()
    assert create.execute() == DONE
    server = Server.objects.get()
    assert (server.name, server.flavor, server.metadata, server.state) == ("web", "small", {"role": "web"}, "active")
    assert status_of(node) == ("ACTIVE", "Creation succeeded")
    assert (reload(node).physical_id, outputs) == (server.uuid, {"physical_id": str(server.uuid)})


def test_creation_for_a_node_with_a_server_is_skipped(created: Node) -> None:
    with pytest.raises(ActionSkipException, match="has its server already"):
        action("NODE_CREATE", created).pre_condition()


def test_node_is_creating_during_the_creation(node: Node) -> None:
    interrupt("NODE_CREATE", node)
    assert status_of(node) == ("CREATING", "Creation in progress")


def test_node_without_capacity_is_in_error_and_can_be_created_later(node: Node) -> None:
    Flavor.objects.update(vcpus=99)
    with pytest.raises(NoValidHost):
        action("NODE_CREATE", node).execute()
    assert status_of(node) == ("ERROR", "No valid host was found. There are not enough hosts available.")
    Flavor.objects.update(vcpus=1)
    action("NODE_CREATE", node).pre_condition()
    action("NODE_CREATE", node).execute()
    assert reload(node).status == "ACTIVE"


def test_deleted_flavor_leaves_the_node_in_error(node: Node) -> None:
    Flavor.objects.soft_delete()
    with pytest.raises(FlavorNotFound):
        action("NODE_CREATE", node).execute()
    assert status_of(node) == ("ERROR", "Flavor small not found")


def test_creation_that_exceeds_its_retries_leaves_the_node_in_error(node: Node) -> None:
    interrupt("NODE_CREATE", node)
    create = action("NODE_CREATE", node)
    with acting_for("another"), pytest.raises(CloudBusy):
        create.execute()
    assert reload(node).status == "CREATING"
    create.post_condition()
    assert status_of(node) == ("ERROR", "Its server was not created")


def test_node_in_deletion_is_not_created(node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(status="DELETING")
    with pytest.raises(ActionFailed, match="is DELETING: something else is done to it"):
        action("NODE_CREATE", node).execute()
    assert not Server.objects.exists()


def test_abort_of_a_creation_deletes_the_server(node: Node) -> None:
    interrupt("NODE_CREATE", node)
    assert action("NODE_CREATE", node).abort()
    assert not Server.objects.present().exists()
    assert (status_of(node), reload(node).physical_id) == (("INIT", "Creation was undone"), None)


def test_completed_creation_cannot_be_aborted(created: Node) -> None:
    assert not action("NODE_CREATE", created).abort()
    assert reload(created).status == "ACTIVE"


def test_repeated_revert_of_a_creation_leaves_no_server(created: Node) -> None:
    assert action("NODE_CREATE", created).revert()
    assert action("NODE_CREATE", created).revert()
    assert not Server.objects.present().exists()
    assert (reload(created).status, reload(created).physical_id) == ("INIT", None)


def test_interrupted_creation_is_completed_with_the_server_already_created(node: Node) -> None:
    interrupt("NODE_CREATE", node)
    create = action("NODE_CREATE", node)
    with acting_for("action", 2):
        assert create.recover() is Recovery.AGAIN
        create.execute()
    assert Server.objects.count() == 1
    assert reload(node).physical_id == Server.objects.get().uuid


def test_completed_creation_without_a_recorded_outcome_is_not_repeated(created: Node) -> None:
    outputs: dict[str, Any] = {}
    assert action("NODE_CREATE", created, outputs=outputs).recover() is Recovery.DONE
    assert outputs == {"physical_id": str(created.physical_id)}


def test_recovery_of_a_creation_fails_for_a_deleted_node() -> None:
    with pytest.raises(ActionFailed, match="not found"):
        action("NODE_CREATE", str(uuid4())).recover()


# NODE_DELETE


def test_node_is_deleted_with_its_server(created: Node) -> None:
    delete = action("NODE_DELETE", created)
    delete.pre_condition()
    assert delete.execute() == DONE
    assert not Server.objects.present().exists()
    assert reload(created).deleted_at


@pytest.mark.parametrize("status", ["INIT", "ERROR", "WARNING"])
def test_node_without_a_server_is_deleted(node: Node, status: str) -> None:
    Node.objects.filter(pk=node.pk).update(status=status)
    action("NODE_DELETE", node).execute()
    assert reload(node).deleted_at


def test_node_whose_server_was_deleted_is_deleted(created: Node) -> None:
    cloud().delete_server(str(created.physical_id))
    action("NODE_DELETE", created).execute()
    assert reload(created).deleted_at


def test_unrecorded_server_is_deleted_with_its_node(node: Node) -> None:
    interrupt("NODE_CREATE", node)
    action("NODE_DELETE", node).execute()
    assert not Server.objects.present().exists()
    assert reload(node).deleted_at


def test_deletion_that_fails_in_the_cloud_leaves_the_node_in_error(created: Node, settings: Settings) -> None:
    settings.EMBEDDED_CLOUD_FAILURE_RATE = 1
    with pytest.raises(OperationFailed):
        action("NODE_DELETE", created).execute()
    assert reload(created).status == "ERROR"
    assert reload(created).physical_id


def test_incomplete_deletion_leaves_the_node_in_error(created: Node) -> None:
    Node.objects.filter(pk=created.pk).update(status="DELETING")
    action("NODE_DELETE", created).post_condition()
    assert status_of(created) == ("ERROR", "Its server was not deleted")


def test_interrupted_deletion_is_completed_by_the_next_attempt(created: Node) -> None:
    Node.objects.filter(pk=created.pk).update(status="DELETING")
    cloud().delete_server(str(created.physical_id))
    delete = action("NODE_DELETE", created)
    assert delete.recover() is Recovery.AGAIN
    delete.execute()
    assert delete.recover() is Recovery.DONE


def test_deletion_can_be_neither_aborted_nor_reverted(created: Node) -> None:
    assert not action("NODE_DELETE", created).abort()
    with pytest.raises(ActionFailed, match="can not be reverted"):
        action("NODE_DELETE", created).revert()


# NODE_CHECK


def check(node: Node) -> dict[str, Any]:
    outputs: dict[str, Any] = {}
    looking = action("NODE_CHECK", node, outputs=outputs)
    looking.pre_condition()
    assert looking.execute() == DONE
    return outputs


@pytest.mark.parametrize("status", ["ACTIVE", "ERROR", "WARNING"])
def test_check_sets_a_node_with_a_running_server_active(created: Node, status: str) -> None:
    Node.objects.filter(pk=created.pk).update(status=status)
    assert check(created) == {"status": "ACTIVE"}
    assert status_of(created) == ("ACTIVE", "Check: Node is ACTIVE.")


def test_check_sets_a_node_with_a_stopped_server_in_error(created: Node) -> None:
    cloud().stop(str(created.physical_id))
    assert check(created) == {"status": "ERROR"}
    reason = f"Check: Node is not ACTIVE. Instance {created.physical_id} is in status SHUTOFF."
    assert status_of(created) == ("ERROR", reason)


def test_check_sets_a_node_with_a_deleted_server_in_error(created: Node) -> None:
    cloud().delete_server(str(created.physical_id))
    check(created)
    assert status_of(created) == ("ERROR", f"Check: Node is not ACTIVE. Instance {created.physical_id} not found.")


def test_check_keeps_a_node_without_a_server_in_error(node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(status="ERROR")
    check(node)
    assert status_of(node) == ("ERROR", "Check: Node is not ACTIVE. It has no server.")


def test_check_of_a_node_that_was_never_created_is_skipped(node: Node) -> None:
    with pytest.raises(ActionSkipException, match="was never created"):
        action("NODE_CHECK", node).pre_condition()


def test_check_of_a_node_in_creation_fails(node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(status="CREATING")
    with pytest.raises(ActionFailed, match="is CREATING"):
        action("NODE_CHECK", node).execute()


def test_check_is_repeated_on_recovery_and_has_no_effect_to_revert(created: Node) -> None:
    looking = action("NODE_CHECK", created)
    assert looking.recover() is Recovery.AGAIN
    assert looking.revert()
    assert looking.abort()


def test_failed_check_keeps_the_status(created: Node, monkeypatch: Any) -> None:
    def refuse(server: str) -> None:
        raise OperationFailed("no answer")

    monkeypatch.setattr(cloud(), "find_server", refuse)
    with pytest.raises(OperationFailed):
        action("NODE_CHECK", created).execute()
    assert reload(created).status == "ACTIVE"


def test_creation_ignores_another_server_of_the_same_name(node: Node) -> None:
    make_server("web")
    action("NODE_CREATE", node).execute()
    assert Server.objects.count() == 2
