"""Plans that free capacity for a server for which Nova found no host: migrations, then the server is created again."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from actions.models import Action
from audits.engine.engine import DecisionEngine
from cluster.models import Server
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from tests.cluster.drivers.openstack.test_pending_servers import WITHOUT_HOST
from tests.cluster.emulator.server import Emulator
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def test_no_migration_is_planned_for_a_server_that_exceeds_the_limits_of_placement(
    emulator: Emulator, settings: Settings
) -> None:
    settings.USE_PENDING_STATE, settings.SYNC_INTERVAL = True, timedelta(0)
    emulator.nova.add_flavor("f60", "wide", vcpus=59)
    emulator.nova.add_server("moves", "compute1")
    emulator.nova.add_server("stays", "compute2")
    lost = emulator.nova.add_server("lost", "compute1", flavor="f60")
    emulator.nova.servers[lost] |= WITHOUT_HOST
    synchronize()
    engine = DecisionEngine()
    while engine.run_next_audit():
        pass
    assert not Action.objects.filter(action_type="migrate").exists()


def test_server_without_a_valid_host_is_created_again_after_migrations_freed_capacity(
    emulator: Emulator, settings: Settings
) -> None:
    settings.USE_PENDING_STATE, settings.SYNC_INTERVAL = True, timedelta(0)
    for key, name, memory in (("f16", "middle", 16_000), ("f30", "large", 30_000), ("f45", "huge", 32_500)):
        emulator.nova.add_flavor(key, name, ram=memory)
    moves = emulator.nova.add_server("moves", "compute1", flavor="f16")
    emulator.nova.add_server("stays", "compute2", flavor="f30")
    lost = emulator.nova.add_server("lost", "compute1", flavor="f45")
    emulator.nova.servers[lost] |= WITHOUT_HOST
    synchronize()
    engine = DecisionEngine()
    while engine.run_next_audit():
        pass
    plan = ActionPlan.objects.get()
    plan.launch()
    run_waiting()
    assert dict(plan.actions.values_list("action_type", "state")) == {"migrate": "SUCCEEDED", "rebuild": "SUCCEEDED"}
    hosts = {one["name"]: one["OS-EXT-SRV-ATTR:host"] for one in emulator.nova.servers.values()}
    assert hosts == {"moves": "compute2", "stays": "compute2", "lost": "compute1"}
    assert (moves in emulator.nova.servers, lost in emulator.nova.servers) == (True, False)
    assert Server.objects.present().get(name="lost").state == "active"
