"""Evacuations in a real Nova of servers whose host is down, by an audit and by the driver."""

from collections.abc import Iterator
from typing import Any

import pytest
from openstack.exceptions import BadRequestException

from actions.models import Action
from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from audits.plugins import synchronize as synchronize_plugins
from cluster.drivers.base import NoValidHost, OperationRefused, cloud
from cluster.models import ComputeNode, Server
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from tests.openstack.conftest import Nova
from tests.openstack.control_plane import INTERVAL, PATIENCE, ControlPlane
from tests.plans.inline import run_waiting
from tests.waiting import wait_for

pytestmark = pytest.mark.openstack


@pytest.fixture
def failed(nova: Nova, control_plane: ControlPlane) -> Iterator[dict[str, str]]:
    """A running and a stopped server on cmp1, whose nova-compute was killed and forced down."""
    servers = {name: nova.boot(name, "cmp1") for name in ("web", "db")}
    nova.compute.stop_server(servers["db"])
    wait_for(lambda: nova.show(servers["db"]).status == "SHUTOFF", PATIENCE, INTERVAL)
    control_plane.kill("cmp1")
    service = next(found for found in nova.compute.services(binary="nova-compute") if found.host == "cmp1")
    nova.compute.update_service_forced_down(service)
    wait_for(lambda: nova.states()["cmp1"][1] == "down", PATIENCE, INTERVAL)
    synchronize()
    yield servers
    control_plane.start(["cmp1"])
    wait_for(lambda: force_up(nova, service), PATIENCE, INTERVAL)


def force_up(nova: Nova, service: Any) -> bool:
    """Unset forced_down, and return whether Nova accepted it: nova-compute deletes its evacuated servers first."""
    try:
        nova.compute.update_service_forced_down(service, forced=False)
    except BadRequestException:
        return False
    return True


def places(nova: Nova) -> dict[str, tuple[str, str]]:
    return {found.name: (found.compute_host, found.status) for found in nova.servers()}


def test_audit_evacuates_a_host_that_was_forced_down(nova: Nova, failed: dict[str, str]) -> None:
    assert ComputeNode.objects.get(hostname="cmp1").forced_down
    synchronize_plugins()
    aim: dict[str, Any] = {"goal": "node_recovery", "strategy": "node_recovery"}
    create_audit(audit_type="ONESHOT", auto_trigger=True, parameters={"failed_node": "cmp1"}, **aim)
    DecisionEngine().run(once=True)
    run_waiting()
    assert (Audit.objects.get().state, ActionPlan.objects.get().state) == ("SUCCEEDED", "SUCCEEDED")
    found = places(nova)
    assert (found["web"][1], found["db"][1]) == ("ACTIVE", "SHUTOFF")
    assert "cmp1" not in {host for host, _ in found.values()}
    outputs = Action.objects.filter(action_type="evacuate").values_list(
        "input_parameters__resource_name", "outputs__destination_node"
    )
    assert dict(outputs) == {name: host for name, (host, _) in found.items()}
    assert {one.migration_type for server in failed.values() for one in nova.migrations(server)} == {"evacuation"}
    service = cloud().find_compute_service("cmp1")
    assert (service.status, service.disabled_reason) == ("disabled", "watcher_evacuated")


def test_server_without_a_possible_host_is_in_error_and_evacuated_later(nova: Nova, failed: dict[str, str]) -> None:
    others = ["cmp2", "cmp3"]
    for host in others:
        cloud().disable_compute_service(host, "a test")
    with pytest.raises(NoValidHost):
        cloud().evacuate(failed["web"])
    assert places(nova)["web"] == ("cmp1", "ERROR")
    for host in others:
        cloud().enable_compute_service(host)
    cloud().evacuate(failed["web"], "cmp2")
    row = Server.objects.get(uuid=failed["web"])
    assert (places(nova)["web"], row.node and row.node.hostname) == (("cmp2", "ACTIVE"), "cmp2")


def test_evacuation_from_a_host_that_is_up_is_refused(nova: Nova) -> None:
    server = nova.boot("web", "cmp1")
    with pytest.raises(OperationRefused, match="still in use"):
        cloud().evacuate(server)
    assert places(nova)["web"] == ("cmp1", "ACTIVE")
