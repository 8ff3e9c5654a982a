"""A stopped or abandoned worker starts no operation in the cloud after its action has ended."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import pytest
from django.db import OperationalError, connection
from pytest_django import Settings

from actions.engine import execution, timeouts
from actions.models import Action
from actions.types.change_node_power_state import ChangeNodePowerState
from actions.types.change_nova_service_state import ChangeNovaServiceState
from actions.types.servers.rebuild import BUILDS
from actions.types.volume_migrate import VolumeMigrate
from cluster.drivers.embedded import delay
from cluster.models import ComputeNode, Server, Volume
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.builders import make_flavor, make_node, make_plan, make_pool, make_server, make_volume, make_volume_type
from tests.chaos.consistency import open_operations
from tests.interleaving import PATIENCE, Rival, interrupt_after, interrupt_before
from watcher_site import plugins
from watcher_site.models import Service

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def appliers() -> list[Service]:
    return [Service.register(Service.APPLIER, host) for host in ("one", "two")]


class KilledProcess:
    """A clock that simulates the end of the process that reads it, by an error of the database."""

    def monotonic(self) -> float:
        raise OperationalError("killed")


@pytest.fixture
def killed_during_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill each worker as soon as its operation has started."""
    monkeypatch.setattr(delay, "time", KilledProcess())


def make_action(applier: Service, action_type: str, **parameters: str) -> Action:
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    plan.actions.update(action_type=action_type, input_parameters=parameters, timeout=5)
    action: Action = plan.actions.get()
    return action


def lease_of(action: Action, applier: Service) -> PlanLease:
    return PlanLease.of(action.action_plan, applier)


def cancel_and_recover(action: Action, applier: Service) -> str:
    """Cancel the plan, recover the action by another applier, and return the state of the action."""
    ActionPlan.objects.filter(pk=action.action_plan_id).update(state="CANCELLING", applier=applier)
    execution.recover(Action.objects.get(pk=action.pk), lease_of(action, applier))
    return str(Action.objects.get(pk=action.pk).state)


def execute_late(monkeypatch: pytest.MonkeyPatch, action: Action, appliers: list[Service]) -> str:
    """Stop a worker just before execute until another applier has ended the action, and return the final state."""
    first, second = appliers
    successor = Rival(lambda: cancel_and_recover(action, second))
    interrupt_before(monkeypatch, plugins.load("ACTION_TYPES")[action.action_type], "execute", successor)
    with suppress(OperationalError):
        execution.execute(action, lease_of(action, first))
    ended: str = successor.result()
    return ended


def volume_migration(applier: Service) -> Action:
    volume = make_volume("data", make_pool("a@lvm#one"))
    destination = make_pool("b@lvm#one").name
    return make_action(
        applier,
        "volume_migrate",
        resource_id=str(volume.uuid),
        migration_type="migrate",
        destination_node=destination,
    )


def volume_retype(applier: Service, pool_of_type: str = "b@lvm#one") -> Action:
    volume = make_volume("data", make_pool("a@lvm#one"))
    fast = make_volume_type("fast")
    make_pool("b@lvm#one")
    type(volume.pool).objects.get(name=pool_of_type).storage_node.volume_types.add(fast)
    return make_action(
        applier, "volume_migrate", resource_id=str(volume.uuid), migration_type="retype", destination_type="fast"
    )


def server_action(action_type: str, columns: dict[str, Any], **parameters: str) -> Callable[[Service], Action]:
    def make(applier: Service) -> Action:
        make_flavor("large", disk=40)
        make_node("there")
        server = make_server("web", make_node("here"), **columns)
        return make_action(applier, action_type, resource_id=str(server.uuid), **parameters)

    return make


def second_rebuild(applier: Service) -> Action:
    """Return a rebuild whose first attempt already saved its data: the next attempt saves none before it starts."""
    action = server_action("rebuild", {})(applier)
    Action.objects.filter(pk=action.pk).update(data={BUILDS: False})
    return Action.objects.get(pk=action.pk)


MOVE = {"source_node": "here", "destination_node": "there"}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(volume_migration, id="volume migration"),
        pytest.param(volume_retype, id="retype to another pool"),
        pytest.param(lambda applier: volume_retype(applier, "a@lvm#one"), id="retype in place"),
        pytest.param(server_action("migrate", {}, migration_type="live", **MOVE), id="live migration"),
        pytest.param(server_action("migrate", {}, migration_type="cold", **MOVE), id="cold migration"),
        pytest.param(server_action("stop", {}), id="stop"),
        pytest.param(server_action("resize", {}, flavor="large"), id="resize"),
        pytest.param(second_rebuild, id="rebuild"),
        pytest.param(server_action("build", {"state": "building", "launched_at": None}), id="build"),
        pytest.param(server_action("delete_server", {}), id="deletion"),
    ],
)
@pytest.mark.usefixtures("killed_during_operation")
def test_stopped_worker_leaves_no_operation_after_its_action_was_cancelled(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service], make: Callable[[Service], Action]
) -> None:
    action = make(appliers[0])
    assert execute_late(monkeypatch, action, appliers) == "CANCELLED"
    assert open_operations() == []


def test_stopped_worker_does_not_move_a_volume_after_the_migration_was_cancelled(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, appliers: list[Service]
) -> None:
    settings.EMBEDDED_CLOUD_SECONDS = 0
    execute_late(monkeypatch, volume_migration(appliers[0]), appliers)
    assert Volume.objects.get().pool.name == "a@lvm#one"


def test_stopped_worker_does_not_reset_a_server_after_the_reset_was_cancelled(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    action = server_action("reset_state", {}, state="error")(appliers[0])
    execute_late(monkeypatch, action, appliers)
    assert Server.objects.get().state == "active"


@pytest.mark.parametrize(
    ("action_type", "parameters"),
    [
        (ChangeNovaServiceState.name, {"resource_name": "here", "state": "disabled"}),
        (ChangeNodePowerState.name, {"state": "off"}),
    ],
)
def test_stopped_worker_does_not_change_a_node_after_its_action_was_cancelled(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    appliers: list[Service],
    action_type: str,
    parameters: dict[str, str],
) -> None:
    settings.EMBEDDED_CLOUD_SECONDS = 0
    node = make_node("here")
    action = make_action(appliers[0], action_type, resource_id=str(node.uuid), **parameters)
    assert execute_late(monkeypatch, action, appliers) == "CANCELLED"
    columns = ("status", "state", "power_state")
    assert ComputeNode.objects.values_list(*columns).get() == tuple(getattr(node, name) for name in columns)


# Workers that do not stop in time.


def fail_hung(action: Action, applier: Service) -> Action | None:
    return timeouts.fail_hung_action(action, lease_of(action, applier), attempt=1, has_begun=True)


@pytest.mark.usefixtures("killed_during_operation")
def test_abandoned_worker_starts_no_operation_after_the_message_was_composed(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    action, execute, advise = volume_migration(appliers[0]), VolumeMigrate.execute, timeouts.advise
    about_to_begin, may_begin = Event(), Event()

    def execute_when_released(self: VolumeMigrate) -> Any:
        about_to_begin.set()
        assert may_begin.wait(PATIENCE)
        return execute(self)

    def work() -> None:
        try:
            with suppress(OperationalError):
                execution.execute(action, lease_of(action, appliers[0]))
        finally:
            connection.close()

    def advise_and_let_begin(given_up: Action) -> str:
        advice = advise(given_up)
        may_begin.set()
        worker.join(PATIENCE)
        return advice

    monkeypatch.setattr(VolumeMigrate, "execute", execute_when_released)
    monkeypatch.setattr(timeouts, "advise", advise_and_let_begin)
    worker = Thread(target=work, daemon=True)
    worker.start()
    assert about_to_begin.wait(PATIENCE)
    fail_hung(action, appliers[0])
    assert Action.objects.get(pk=action.pk).state == "FAILED"
    assert open_operations() == []


@pytest.mark.usefixtures("killed_during_operation")
def test_message_of_an_abandoned_worker_names_the_volume_of_an_operation_that_just_started(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    action = volume_migration(appliers[0])
    applier = Rival(lambda: fail_hung(action, appliers[0]))
    interrupt_after(monkeypatch, execution.Execution, "require_attempt", applier)
    with suppress(OperationalError):
        execution.execute(Action.objects.get(pk=action.pk), lease_of(action, appliers[0]))
    ended = applier.result()
    assert ended.state == "FAILED"
    assert f"Check volume {Volume.objects.get().uuid} in the cloud" in ended.outputs["error"]
