"""Servers for which real Nova found no host."""

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
def lost(nova: Nova, settings: Settings) -> str:
    """The UUID of a server of the site's project that no node has the memory for."""
    settings.USE_PENDING_STATE = True
    nova.flavor("huge", 1, 400_000, 1)
    server = str(nova.ask_for("waiting", "huge").id)
    synchronize()
    return server


def state(server: str) -> str:
    return str(Server.objects.get(uuid=server).state)


def test_a_server_that_found_no_host_is_pending(lost: str) -> None:
    assert (state(lost), cloud().find_server(lost).status) == ("pending", "PENDING")


def test_a_server_that_is_given_up_waits_no_more(lost: str) -> None:
    cloud().reset_state(lost, "error", expected="PENDING")
    assert (state(lost), cloud().find_server(lost).status) == ("error", "ERROR")
    synchronize()
    assert state(lost) == "error"


def test_a_member_keeps_the_server_that_found_no_host(nova: Nova, lost: str) -> None:
    nova.compute.delete_server(lost)
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


def test_no_server_moves_for_a_server_that_placement_refuses_for_its_size(nova: Nova, settings: Settings) -> None:
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
