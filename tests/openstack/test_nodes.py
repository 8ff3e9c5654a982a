"""Aggregates of real Nova, and nodes whose nova-compute does not run."""

import signal
from collections.abc import Iterator

import pytest

from actions.models import Action
from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from audits.plugins import synchronize as synchronize_plugins
from cluster.drivers.base import OperationOutstanding, cloud
from cluster.models import HostAggregate
from cluster.operations.synchronization import synchronize
from tests.builders import make_plan
from tests.openstack.conftest import Background, Nova
from tests.openstack.control_plane import INTERVAL, PATIENCE, ControlPlane
from tests.plans.inline import run_waiting
from tests.waiting import wait_for

pytestmark = pytest.mark.openstack


@pytest.fixture
def down(nova: Nova, control_plane: ControlPlane) -> str:
    """A host that is down since the last synchronization, with a server on another host."""
    control_plane.kill("cmp3")
    wait_for(lambda: nova.is_down("cmp3", control_plane), PATIENCE, INTERVAL)
    nova.boot("web", "cmp1")
    synchronize()
    return "cmp3"


@pytest.fixture
def frozen(nova: Nova, control_plane: ControlPlane, background: Background) -> Iterator[str]:
    """A server whose host is stopped when it starts to migrate the server."""
    server = nova.boot("web", "cmp1")

    def freeze() -> None:
        wait_for(lambda: nova.show(server).task_state, PATIENCE)
        wait_for(lambda: nova.is_down("cmp1", control_plane), PATIENCE, INTERVAL)

    control_plane.send_signal("cmp1", signal.SIGSTOP)
    background(freeze)
    yield server
    control_plane.send_signal("cmp1", signal.SIGCONT)
    wait_for(lambda: nova.states()["cmp1"] == ("enabled", "up"), PATIENCE, INTERVAL)
    wait_for(lambda: nova.show(server).task_state is None, PATIENCE, INTERVAL)


def test_aggregates_have_the_uuids_of_nova(nova: Nova) -> None:
    expected = {(found.name, found.uuid) for found in nova.compute.aggregates()}
    rows = HostAggregate.objects.present().values_list("name", "uuid")
    assert {(name, str(uuid)) for name, uuid in rows} == expected


def test_backup_node_that_is_down_fails_the_audit(down: str) -> None:
    synchronize_plugins()
    parameters = {"maintenance_node": "cmp1", "backup_node": down}
    create_audit(audit_type="ONESHOT", goal="cluster_maintaining", strategy="host_maintenance", parameters=parameters)
    DecisionEngine().run(once=True)
    audit = Audit.objects.get()
    assert (audit.state, f"{down} is down" in audit.status_message) == ("FAILED", True)


def test_migration_to_a_node_that_is_down_fails_without_a_request(nova: Nova, down: str) -> None:
    [server] = nova.servers()
    plan = make_plan()
    where = {"source_node": "cmp1", "destination_node": down, "migration_type": "live"}
    Action.objects.create(
        action_plan=plan, action_type="migrate", input_parameters={"resource_id": server.id, **where}
    )
    plan.launch()
    run_waiting()
    found = Action.objects.get()
    assert (found.state, found.status_message) == (
        "FAILED",
        f"Action failed in pre_condition: Destination node {down} is down",
    )
    assert nova.migrations(server.id) == []


def test_migration_from_a_node_that_is_down_raises_operation_outstanding(frozen: str) -> None:
    with pytest.raises(OperationOutstanding, match="nova-compute service cmp1 is down"):
        cloud().cold_migrate(frozen, "cmp2")
