"""Real ``manage.py run_applier`` processes on the test database: killed, stopped and restarted."""

import signal
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from actions.models import Action, ActionEvent
from actions.operations.signals import signal_action
from plans.models import ActionPlan
from tests.builders import action, make_node, make_plan, make_server
from tests.processes import Process, start_command, start_fresh_command
from tests.waiting import PATIENCE, wait_for
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
Start = Callable[..., Process]
ENVIRONMENT = {"WATCHER_POLL_INTERVAL": "0.1", "WATCHER_EMBEDDED_CLOUD_SECONDS": "0.5"}


@pytest.fixture
def start() -> Iterator[Start]:
    """Start appliers, and kill them after the test."""
    processes: list[Process] = []

    def start_applier(*arguments: str) -> Process:
        processes.append(start_command("run_applier", *arguments, **ENVIRONMENT))
        return processes[-1]

    yield start_applier
    for process in processes:
        process.kill()
        process.wait()


def kill(process: Process, kind: str = Service.APPLIER) -> None:
    """Kill the process of all services of a kind, and end their leases, which would expire after a minute."""
    gone = list(Service.objects.active().filter(name=kind).values_list("pk", flat=True))
    process.kill()
    process.wait()
    end_leases(gone)


def end_leases(services: list[int]) -> None:
    Service.objects.filter(pk__in=services).update(last_seen_up=timezone.now() - timedelta(hours=1))


def state(plan: ActionPlan) -> str:
    return ActionPlan.objects.get(pk=plan.pk).state


def make_sleepy_plan(seconds: int) -> ActionPlan:
    """Create a plan of three actions, of which the second sleeps."""
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"]}, state="PENDING")
    Action.objects.filter(pk=action(plan, "b").pk).update(action_type="sleep", input_parameters={"duration": seconds})
    return plan


def is_asleep(plan: ActionPlan) -> bool:
    return plan.actions.filter(action_type="sleep", state="ONGOING").exists()


def test_applier_with_once_runs_pending_plans_and_exits() -> None:
    plans = [make_plan({"a": [], "b": ["a"]}, state="PENDING") for _ in range(6)]
    applier = start_fresh_command("run_applier", "--once", **ENVIRONMENT)
    applier.communicate(timeout=PATIENCE)
    assert applier.returncode == 0
    assert [state(plan) for plan in plans] == ["SUCCEEDED"] * 6
    assert not Service.objects.present().exists()


def test_plan_of_a_killed_applier_is_completed_by_another_applier(start: Start) -> None:
    plan = make_sleepy_plan(1)
    killed = start()
    wait_for(lambda: is_asleep(plan))
    kill(killed)
    start()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    assert list(plan.actions.order_by("pk").values_list("state", "attempt")) == [
        ("SUCCEEDED", 1),
        ("SUCCEEDED", 2),
        ("SUCCEEDED", 1),
    ]
    assert not ActionEvent.objects.filter(finish_time=None).exists()


def test_interrupted_migration_is_repeated_by_the_next_applier(start: Start) -> None:
    source, target = make_node("source"), make_node("target")
    server = make_server(node=source)
    plan = make_plan({"a": []}, state="PENDING")
    plan.actions.update(
        action_type="migrate",
        input_parameters={
            "resource_id": str(server.uuid),
            "migration_type": "live",
            "source_node": "source",
            "destination_node": "target",
        },
    )
    killed = start()
    wait_for(lambda: type(server).objects.get(pk=server.pk).task_state)
    kill(killed)
    start()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    moved = type(server).objects.get(pk=server.pk)
    assert (moved.node, moved.destination, moved.task_state) == (target, None, None)


def test_stopped_applier_completes_running_actions_and_releases_its_plans(
    start: Start,
) -> None:
    plan = make_sleepy_plan(2)
    stopped = start()
    wait_for(lambda: is_asleep(plan))
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(PATIENCE) == 0
    assert list(plan.actions.order_by("pk").values_list("state", flat=True)) == ["SUCCEEDED", "SUCCEEDED", "PENDING"]
    assert (state(plan), ActionPlan.objects.get(pk=plan.pk).applier) == ("ONGOING", None)
    assert start("--once").wait(PATIENCE) == 0
    assert state(plan) == "SUCCEEDED"


def test_running_action_is_aborted_when_its_plan_is_cancelled(start: Start) -> None:
    plan = make_sleepy_plan(60)
    start()
    wait_for(lambda: is_asleep(plan))
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    wait_for(lambda: state(plan) == "CANCELLED")
    assert list(plan.actions.order_by("pk").values_list("state", flat=True)) == [
        "SUCCEEDED",
        "CANCELLED",
        "CANCELLED",
    ]


def test_several_appliers_run_each_action_once(start: Start) -> None:
    graph = {str(number): [str(parent) for parent in (number - 1, number - 3) if parent >= 0] for number in range(12)}
    plans = [make_plan(graph, state="PENDING") for _ in range(10)]
    for _ in range(2):
        start()
    wait_for(lambda: all(state(plan) == "SUCCEEDED" for plan in plans))
    assert ActionEvent.objects.filter(event="execute").count() == len(plans) * len(graph)


@pytest.mark.parametrize("workers", ["0", "-1", "many", "1e3"])
def test_invalid_number_of_workers_is_refused(start: Start, workers: str) -> None:
    process = start(f"--workers={workers}")
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.splitlines()[-1].endswith(f"must be a number from 1 to 1000, and is {workers}")


def test_suspended_action_of_a_killed_applier_stays_suspended_until_it_is_resumed(
    start: Start,
) -> None:
    plan = make_sleepy_plan(60)
    killed = start()
    wait_for(lambda: is_asleep(plan))
    asleep = action_asleep(plan)
    signal_action(asleep.uuid, Action.Signal.SUSPEND, "alice")
    wait_for(lambda: action_asleep(plan).state == "SUSPENDED")
    kill(killed)
    owner = ActionPlan.objects.get(pk=plan.pk).applier
    start()
    wait_for(lambda: ActionPlan.objects.get(pk=plan.pk).applier != owner)
    assert action_asleep(plan).state == "SUSPENDED"
    plan.actions.filter(pk=asleep.pk).update(input_parameters={"duration": 0})
    signal_action(asleep.uuid, Action.Signal.RESUME, "alice")
    wait_for(lambda: state(plan) == "SUCCEEDED")
    assert action_asleep(plan).attempt == 2


def action_asleep(plan: ActionPlan) -> Action:
    return plan.actions.get(action_type="sleep")
