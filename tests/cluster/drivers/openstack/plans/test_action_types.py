"""Action types run by the applier on an OpenStack cloud, except those of the other modules."""

from typing import Any

import pytest
from pytest_django import Settings

from actions.models import Action, ActionParent
from plans.models import ActionPlan
from tests.builders import make_plan
from tests.cluster.drivers.openstack.cached_contents import write_cached_contents
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db
VOLUME, MACHINE = "21111111-1111-1111-1111-111111111111", "31111111-1111-1111-1111-111111111111"
HERE, THERE = "a@lvm#one", "b@lvm#two"
WEB, IDLE = make_uuid("web"), make_uuid("compute2")


@pytest.fixture
def populated(emulator: Emulator) -> Emulator:
    """A cloud with a server, its attached volume, two pools and an idle machine."""
    emulator.nova.add_flavor("f2", "m1.large", vcpus=4)
    emulator.nova.add_server("web", "compute1")
    emulator.cinder.add_type("11111111-1111-1111-1111-111111111111", "fast", "lvm")
    emulator.cinder.add_pool(HERE, "lvm")
    emulator.cinder.add_pool(THERE, "lvm")
    attached = {"attachments": [{"attachment_id": make_uuid("attachment"), "server_id": WEB}], "status": "in-use"}
    emulator.cinder.add_volume(VOLUME, "data", HERE, volume_type=None, **attached)
    emulator.ironic.add(MACHINE, "rack-2", compute_node_id=IDLE)
    write_cached_contents("a server, a volume and an idle machine")
    return emulator


def run(kind: str, **parameters: Any) -> tuple[str, str]:
    """Run a plan of one action, and return its state and status message."""
    plan = make_plan()
    action = Action.objects.create(action_plan=plan, action_type=kind, input_parameters=parameters)
    ActionPlan.objects.get(pk=plan.pk).launch()
    run_waiting()
    ended = Action.objects.get(pk=action.pk)
    return ended.state, ended.status_message or ""


def test_server_is_resized(populated: Emulator) -> None:
    assert run("resize", resource_id=WEB, flavor="m1.large") == ("SUCCEEDED", "")
    assert populated.nova.servers[WEB]["flavor"]["vcpus"] == 4


def test_server_is_stopped(populated: Emulator) -> None:
    assert run("stop", resource_id=WEB) == ("SUCCEEDED", "")
    assert populated.nova.servers[WEB]["status"] == "SHUTOFF"


def test_attached_volume_is_migrated(populated: Emulator) -> None:
    outcome = run("volume_migrate", resource_id=VOLUME, migration_type="migrate", destination_node=THERE)
    assert outcome == ("SUCCEEDED", "")
    assert populated.cinder.volumes[VOLUME]["os-vol-host-attr:host"] == THERE


def test_volume_is_retyped(populated: Emulator) -> None:
    outcome = run("volume_migrate", resource_id=VOLUME, migration_type="retype", destination_type="fast")
    assert outcome == ("SUCCEEDED", "")
    assert populated.cinder.volumes[VOLUME]["volume_type"] == "fast"


def test_idle_compute_node_is_powered_off(populated: Emulator) -> None:
    assert run("change_node_power_state", resource_id=IDLE, state="off") == ("SUCCEEDED", "")
    assert populated.ironic.nodes[MACHINE]["power_state"] == "power off"


def test_compute_node_with_running_servers_is_not_powered_off(populated: Emulator) -> None:
    populated.nova.servers[WEB]["OS-EXT-SRV-ATTR:host"] = "compute2"
    state, message = run("change_node_power_state", resource_id=IDLE, state="off")
    assert (state, message.split(": ", 1)[1]) == ("FAILED", "Compute node compute2 has 1 running server")


def test_unknown_flavor_fails_the_action(populated: Emulator) -> None:
    state, message = run("resize", resource_id=WEB, flavor="huge")
    assert (state, message.split(": ", 1)[1]) == ("FAILED", "Flavor huge not found")


def test_deleted_volume_skips_the_action(populated: Emulator) -> None:
    del populated.cinder.volumes[VOLUME]
    state, message = run("volume_migrate", resource_id=VOLUME, migration_type="migrate", destination_node=THERE)
    assert (state, message) == ("SKIPPED", f"Action was skipped automatically: Volume {VOLUME} not found")


def test_volume_migration_without_cinder_fails(populated: Emulator) -> None:
    populated.offered.remove("block-storage")
    populated.tokens.clear()
    state, message = run("volume_migrate", resource_id=VOLUME, migration_type="migrate", destination_node=THERE)
    assert (state, message.split(": ", 1)[1]) == (
        "FAILED",
        "The cloud has no Cinder: its catalog has no endpoint of type block-storage",
    )


def test_power_off_of_a_node_unknown_to_ironic_fails(populated: Emulator) -> None:
    populated.ironic.nodes.clear()
    state, message = run("change_node_power_state", resource_id=IDLE, state="off")
    assert (state, message.split(": ", 1)[1]) == (
        "FAILED",
        "Compute node compute2.example.org in Ironic not found",
    )


def test_migration_is_rolled_back(populated: Emulator, settings: Settings) -> None:
    settings.ROLLBACK = True
    plan = make_plan()
    move = {"resource_id": WEB, "migration_type": "live", "source_node": "compute1"}
    first = Action.objects.create(action_plan=plan, action_type="migrate", input_parameters=move)
    last = Action.objects.create(
        action_plan=plan, action_type="resize", input_parameters={"resource_id": WEB, "flavor": "huge"}
    )
    ActionParent.objects.create(parent=first, child=last)
    ActionPlan.objects.get(pk=plan.pk).launch()
    run_waiting()
    assert ActionPlan.objects.get(pk=plan.pk).state == "FAILED"
    assert populated.count("POST .*/action") == 2
    assert populated.nova.servers[WEB]["OS-EXT-SRV-ATTR:host"] == "compute1"
