"""Real appliers on an emulated OpenStack cloud: killed during an operation, and cancelled."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import make_plan
from tests.cluster.emulator.nova import make_uuid
from tests.cluster.emulator.server import Emulator
from tests.end_to_end.processes.test_applier_processes import kill, state
from tests.processes import Process, start_command
from tests.waiting import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
Start = Callable[[], Process]
WEB = make_uuid("web")


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    """A cloud of two hosts and a server, in which operations do not end by themselves."""
    cloud = Emulator(readings=float("inf")).start()
    cloud.nova.add_flavor("f1", "m1.small")
    cloud.nova.add_flavor("f2", "m1.large", vcpus=4)
    cloud.nova.add_host("compute1")
    cloud.nova.add_host("compute2")
    cloud.nova.add_server("web", "compute1")
    yield cloud
    cloud.stop()


@pytest.fixture
def start(emulator: Emulator, tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "clouds.yaml").write_text(emulator.clouds_yaml())
    environment = {
        "WATCHER_POLL_INTERVAL": "0.1",
        "WATCHER_CLOUD": "cluster.drivers.openstack.OpenStackCloud",
        "WATCHER_OPENSTACK_POLL_INTERVAL": "0.05",
        "OS_CLOUD": "emulated",
        "OS_CLIENT_CONFIG_FILE": str(tmp_path / "clouds.yaml"),
    }
    processes: list[Process] = []

    def start_applier() -> Process:
        processes.append(start_command("run_applier", **environment))
        return processes[-1]

    yield start_applier
    for process in processes:
        process.kill()
        process.wait()


def plan_of(kind: str, **parameters: str) -> ActionPlan:
    plan = make_plan(state="PENDING")
    Action.objects.create(action_plan=plan, action_type=kind, input_parameters={"resource_id": WEB, **parameters})
    return plan


def migration(kind: str) -> ActionPlan:
    return plan_of("migrate", migration_type=kind, source_node="compute1", destination_node="compute2")


def kill_during_operation(emulator: Emulator, start: Start) -> None:
    """Start an applier and kill it during an operation, which the cloud completes after some more readings."""
    killed = start()
    wait_for(lambda: WEB in emulator.nova.operations)
    kill(killed)
    emulator.nova.operations[WEB]["left"] = 5


@pytest.mark.parametrize("kind", ["live", "cold"])
def test_migration_of_a_killed_applier_is_completed_without_another_request(
    emulator: Emulator, start: Start, kind: str
) -> None:
    plan = migration(kind)
    kill_during_operation(emulator, start)
    start()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    server = emulator.nova.servers[WEB]
    assert (server["OS-EXT-SRV-ATTR:host"], server["status"]) == ("compute2", "ACTIVE")
    assert emulator.count("POST .*/action") == {"live": 1, "cold": 2}[kind]


def test_evacuation_of_a_killed_applier_is_requested_once(emulator: Emulator, start: Start) -> None:
    emulator.nova.services[make_uuid("service of compute1")] |= {"status": "disabled", "state": "down"}
    plan = plan_of("evacuate", source_node="compute1", fencing="confirmed")
    kill_during_operation(emulator, start)
    start()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    server = emulator.nova.servers[WEB]
    assert (server["OS-EXT-SRV-ATTR:host"], server["status"]) == ("compute2", "ACTIVE")
    assert emulator.count("POST .*/action") == 1


def test_resize_of_a_killed_applier_is_confirmed_by_another_applier(emulator: Emulator, start: Start) -> None:
    plan = plan_of("resize", flavor="m1.large")
    kill_during_operation(emulator, start)
    start()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    server = emulator.nova.servers[WEB]
    assert (server["flavor"]["original_name"], server["status"]) == ("m1.large", "ACTIVE")


def test_migration_that_failed_without_a_live_applier_is_repeated(emulator: Emulator, start: Start) -> None:
    plan = migration("live")
    emulator.nova.failing = "stay"
    kill_during_operation(emulator, start)
    emulator.nova.operations[WEB]["left"] = 1
    emulator.readings = 2
    emulator.nova.advance(emulator.nova.servers[WEB])
    emulator.nova.failing = None
    start()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    assert emulator.nova.servers[WEB]["OS-EXT-SRV-ATTR:host"] == "compute2"


def test_cancellation_of_a_plan_aborts_the_live_migration_in_the_cloud(emulator: Emulator, start: Start) -> None:
    plan = migration("live")
    start()
    wait_for(lambda: WEB in emulator.nova.operations)
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    wait_for(lambda: state(plan) == "CANCELLED")
    server = emulator.nova.servers[WEB]
    assert (server["OS-EXT-SRV-ATTR:host"], server["status"]) == ("compute1", "ACTIVE")
    assert Action.objects.get(action_plan=plan).state == "CANCELLED"
