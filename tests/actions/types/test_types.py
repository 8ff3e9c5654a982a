"""migrate, stop, change_nova_service_state and sleep on the embedded cloud, and rules for every action type."""

from uuid import uuid4

import pytest
from django.conf import settings
from django.utils.module_loading import import_string

from actions.types.base import DONE, ActionFailed, ActionSkipException, ActionType, make
from actions.types.base import ActionContext as Context
from cluster.drivers.base import CloudError
from cluster.models import ComputeNode, Server
from tests.builders import make_node, make_server
from watcher_site import plugins

pytestmark = pytest.mark.django_db


def migrate(server: Server | str, **parameters: object):
    uuid = server if isinstance(server, str) else str(server.uuid)
    parameters = {"migration_type": "live", "source_node": "source", "destination_node": "target", **parameters}
    return make("migrate", {"resource_id": uuid, **parameters}, Context())


def stop(server: Server | str):
    uuid = server if isinstance(server, str) else str(server.uuid)
    return make("stop", {"resource_id": uuid}, Context())


def change(state: str, host: str = "source", **parameters: object):
    parameters = {"resource_id": str(uuid4()), "resource_name": host, "state": state, **parameters}
    return make("change_nova_service_state", parameters, Context())


@pytest.fixture
def source() -> ComputeNode:
    return make_node("source")


@pytest.fixture
def target() -> ComputeNode:
    return make_node("target")


@pytest.fixture
def server(source: ComputeNode, target: ComputeNode) -> Server:
    return make_server(node=source)


def reload(server: Server) -> Server:
    return Server.objects.get(pk=server.pk)


def finding(action_type, error: type[Exception]) -> str:
    with pytest.raises(error) as caught:
        action_type.pre_condition()
    return str(caught.value)


def test_migrate_skips_a_deleted_server() -> None:
    missing = str(uuid4())
    assert finding(migrate(missing), ActionSkipException) == f"Instance {missing} not found"


def test_migrate_skips_a_server_on_another_node(server: Server, target: ComputeNode) -> None:
    server.node = target
    server.save_changes(["node"])
    assert finding(migrate(server), ActionSkipException) == (
        f"Instance {server.uuid} is not running on source node source (currently on target)"
    )


def test_migrate_fails_for_an_unknown_destination(server: Server) -> None:
    assert finding(migrate(server, destination_node="far"), ActionFailed) == "Destination node far not found"


def test_migrate_fails_for_a_disabled_destination(server: Server, target: ComputeNode) -> None:
    target.status = "disabled"
    target.save_changes(["status"])
    assert finding(migrate(server), ActionFailed) == "Destination node target is not in enabled state"


def test_migrate_fails_in_pre_condition_for_a_destination_that_is_down(server: Server) -> None:
    ComputeNode.objects.filter(hostname="target").update(state="down")
    assert finding(migrate(server), ActionFailed) == "Destination node target is down"


def test_migrate_fails_in_pre_condition_for_the_node_of_the_server(server: Server) -> None:
    found = finding(migrate(server, destination_node="source"), ActionFailed)
    assert found == f"Instance {server.uuid} is already on source"


def test_live_migration_fails_for_a_stopped_server(server: Server) -> None:
    server.state = "stopped"
    server.save_changes(["state"])
    assert finding(migrate(server), ActionFailed) == (
        f"Live migration requires instance {server.uuid} to be in ACTIVE status (current status: SHUTOFF)"
    )


@pytest.mark.parametrize(("state", "kind"), [("paused", "live"), ("active", "live"), ("stopped", "cold")])
def test_migrate_moves_a_server(server: Server, target: ComputeNode, state: str, kind: str) -> None:
    server.state = state
    server.save_changes(["state"])
    action_type = migrate(server, migration_type=kind)
    action_type.pre_condition()
    assert action_type.execute() == DONE
    moved = reload(server)
    assert (moved.node, moved.destination, moved.task_state, moved.state) == (target, None, None, state)


@pytest.mark.parametrize("parameters", [{"destination_node": None}, {}])
def test_migrate_without_destination_lets_the_cloud_choose(
    server: Server, target: ComputeNode, parameters: dict
) -> None:
    required = {"resource_id": str(server.uuid), "migration_type": "live", "source_node": "source"}
    make("migrate", {**required, **parameters}, Context()).execute()
    assert reload(server).node == target


def test_revert_of_a_migration_moves_the_server_back(server: Server, source: ComputeNode) -> None:
    action_type = migrate(server)
    action_type.execute()
    assert action_type.revert()
    assert reload(server).node == source


def test_revert_of_a_migration_keeps_a_server_on_its_source_node(server: Server, source: ComputeNode) -> None:
    assert migrate(server).revert()
    assert reload(server).node == source


def test_migrate_records_the_destination_that_the_cloud_chose(server: Server) -> None:
    action_type, after_a_loss = (migrate(server, destination_node=None) for _ in range(2))
    action_type.execute()
    after_a_loss.recover()
    assert [one.context.outputs for one in (action_type, after_a_loss)] == [{"destination_node": "target"}] * 2


def test_migrate_refuses_a_resource_id_that_is_not_a_uuid() -> None:
    with pytest.raises(ActionFailed, match=r"^Invalid input parameters: resource_id: 'web-1' does not match"):
        migrate("web-1")


def test_stop_stops_a_server(server: Server) -> None:
    assert stop(server).execute() == DONE
    assert (reload(server).state, reload(server).task_state) == ("stopped", None)


def test_stop_skips_a_deleted_server() -> None:
    missing = str(uuid4())
    assert finding(stop(missing), ActionSkipException) == f"Instance {missing} not found"


def test_stop_skips_a_stopped_server(server: Server) -> None:
    stop(server).execute()
    assert finding(stop(server), ActionSkipException) == f"Instance {server.uuid} is already stopped"


def test_stop_succeeds_if_the_server_is_deleted_meanwhile(server: Server) -> None:
    action_type = stop(server)
    action_type.pre_condition()
    Server.objects.filter(pk=server.pk).soft_delete()
    assert action_type.execute() == DONE


def test_revert_of_a_stop_starts_the_server(server: Server) -> None:
    action_type = stop(server)
    action_type.execute()
    assert action_type.revert()
    assert reload(server).state == "active"


def test_stop_cannot_be_aborted(server: Server) -> None:
    assert stop(server).abort() is False


def test_service_is_disabled_with_a_reason(source: ComputeNode) -> None:
    change("disabled", disabled_reason="new fans").execute()
    assert ComputeNode.objects.values_list("status", "disabled_reason").get() == ("disabled", "new fans")


def test_enabling_a_service_clears_the_reason(source: ComputeNode) -> None:
    change("disabled", disabled_reason="new fans").execute()
    change("enabled").execute()
    assert ComputeNode.objects.values_list("status", "disabled_reason").get() == ("enabled", None)


def test_revert_of_a_service_change_restores_the_state(source: ComputeNode) -> None:
    action_type = change("disabled")
    action_type.execute()
    assert action_type.revert()
    assert ComputeNode.objects.get().status == "enabled"


def test_service_change_skips_an_unknown_host() -> None:
    assert finding(change("disabled", "far"), ActionSkipException) == "nova-compute service far not found"


def test_service_change_skips_a_host_in_the_requested_state(source: ComputeNode) -> None:
    assert finding(change("enabled"), ActionSkipException) == "nova-compute service source is already in state enabled"


def test_service_states_up_and_down_pass_the_schema_and_fail_in_execute(source: ComputeNode) -> None:
    action_type = change("up")
    action_type.pre_condition()
    with pytest.raises(ActionFailed, match=r"^The target state is not defined$"):
        action_type.execute()


@pytest.mark.parametrize("duration", [0, 0.9])
def test_sleep_accepts_a_fraction_of_a_second(duration: float) -> None:
    assert make("sleep", {"duration": duration}, Context()).execute() == DONE


def test_cloud_refuses_a_busy_server(server: Server) -> None:
    server.task_state = "migrating"
    server.save_changes(["task_state"])
    with pytest.raises(CloudError, match="is busy: migrating"):
        stop(server).execute()


@pytest.mark.parametrize("name", sorted(plugins.load("ACTION_TYPES")))
def test_every_type_refuses_unknown_parameters(name: str) -> None:
    with pytest.raises(ActionFailed, match=r"^Invalid input parameters: "):
        make(name, {"surprise": 1}, Context())


@pytest.mark.parametrize("path", settings.ACTION_TYPES)
def test_every_type_implements_recover(path: str) -> None:
    assert import_string(path).recover is not ActionType.recover
