"""Pending servers, for which a real Nova found no host."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from actions.models import Action
from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.plugins import synchronize as synchronize_plugins
from cluster.drivers.base import cloud
from cluster.models import ComputeNode, Server
from cluster.operations.synchronization import synchronize
from tests.builders import make_plan
from tests.openstack.configuration import COMPUTE_NODES, VCPUS
from tests.openstack.conftest import Nova
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.openstack


@pytest.fixture
def unschedulable(nova: Nova, settings: Settings) -> str:
    """The UUID of a server in the project of the site with more memory than any node."""
    settings.USE_PENDING_STATE = True
    nova.flavor("huge", 1, 400_000, 1)
    server = str(nova.ask_for("waiting", "huge").id)
    synchronize()
    return server


def state(server: str) -> str:
    return str(Server.objects.get(uuid=server).state)


def test_server_without_a_host_is_pending(unschedulable: str) -> None:
    assert (state(unschedulable), cloud().find_server(unschedulable).status) == ("pending", "PENDING")


def test_server_reset_to_error_is_no_longer_pending(unschedulable: str) -> None:
    cloud().reset_state(unschedulable, "error", expected="PENDING")
    assert (state(unschedulable), cloud().find_server(unschedulable).status) == ("error", "ERROR")
    synchronize()
    assert state(unschedulable) == "error"


def test_rebuild_of_a_pending_server_without_a_trust_fails_and_keeps_the_server(
    nova: Nova, unschedulable: str
) -> None:
    nova.compute.delete_server(unschedulable)
    own = nova.ask_for("waiting-1", "huge", by=nova.member, user_data="IyEvYmluL3NoCg==")
    synchronize()
    plan = make_plan()
    rebuild = Action.objects.create(
        action_plan=plan, action_type="rebuild", input_parameters={"resource_id": str(own.id)}
    )
    plan.launch()
    run_waiting()
    rebuild.refresh_from_db()
    assert (state(own.id), rebuild.state) == ("error", "FAILED")
    assert f"has not let the site create servers in project {own.project_id}" in rebuild.status_message
    assert [found.id for found in nova.member.compute.servers()] == [own.id]


def test_no_server_is_migrated_for_a_server_over_max_unit(nova: Nova, settings: Settings) -> None:
    settings.USE_PENDING_STATE, settings.SYNC_INTERVAL = True, timedelta(0)
    for host in COMPUTE_NODES:
        nova.boot(f"{host}-vm", host)
    # The nodes have 16 vCPUs, of which 64 may be allocated, but no more than 16 for one server.
    nova.flavor("wide", 63, 512, 1)
    wide = str(nova.ask_for("wide", "wide").id)
    synchronize()
    synchronize_plugins()
    engine = DecisionEngine()
    while engine.run_next_audit():
        pass
    assert (state(wide), ComputeNode.objects.get(hostname="cmp1").allocation_units["vcpus"]["max_unit"]) == (
        "pending",
        VCPUS,
    )
    assert Audit.objects.get().state == "SUCCEEDED"
    assert not Action.objects.filter(action_type="migrate").exists()
