"""Real applier and worker processes on the test database and a real RabbitMQ."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.conf import settings

from actions.models import Action, ActionEvent
from plans.models import ActionPlan
from tests.actions.exclusions.builders import make_exclusion
from tests.broker import BROKER_URL, BrokerProxy, delete_queues, own_queues
from tests.builders import action, make_plan
from tests.end_to_end.processes.test_applier_processes import (
    end_leases,
    is_asleep,
    kill,
    make_sleepy_plan,
    state,
)
from tests.processes import Process, start_command, start_fresh_command
from tests.waiting import PATIENCE, wait_for
from watcher_site.models import Service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.rabbitmq,
    pytest.mark.django_db(transaction=True),
]
TEST_ACTION_TYPES = ["tests.end_to_end.action_types.Nap", "tests.end_to_end.action_types.Stuck"]


class Site:
    """The processes of one site, with a host name for each machine."""

    def __init__(self, queues: list[str]) -> None:
        self.queues = queues
        self.broker = BROKER_URL
        self.start_command: Callable[..., Process] = start_command
        self.processes: list[Process] = []

    def start(self, command: str, *arguments: str, **environment: str) -> Process:
        own = {
            "WATCHER_EXECUTOR": "celery",
            "CELERY_BROKER_URL": self.broker,
            "WATCHER_CELERY_QUEUE": self.queues[0],
            "WATCHER_POLL_INTERVAL": "0.2",
            "WATCHER_EMBEDDED_CLOUD_SECONDS": "0.5",
            "WATCHER_ACTION_TYPES": ",".join([*settings.ACTION_TYPES, *TEST_ACTION_TYPES]),
        }
        self.processes.append(self.start_command(command, *arguments, **own | environment))
        return self.processes[-1]

    def applier(self, host: str = "control", **environment: str) -> Process:
        return self.start("run_applier", WATCHER_HOST=host, **environment)

    def worker(self, host: str = "worker-1", *arguments: str, workers: int = 2, **environment: str) -> Process:
        process = self.start("run_worker", f"--workers={workers}", *arguments, WATCHER_HOST=host, **environment)
        wait_for(lambda: Service.objects.active().workers().filter(host=host).count() >= workers)
        return process

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def queues() -> Iterator[list[str]]:
    """Names that all tests share: processes with the same settings start faster."""
    with own_queues("heavy") as names:
        yield names


@pytest.fixture
def site(queues: list[str]) -> Iterator[Site]:
    made = Site(queues)
    yield made
    made.stop()
    delete_queues(queues)


def graph(size: int) -> dict[str, list[str]]:
    return {str(number): [str(parent) for parent in (number - 1, number - 3) if parent >= 0] for number in range(size)}


def executions() -> int:
    return ActionEvent.objects.filter(event="execute").count()


def hosts(plan: ActionPlan) -> set[str]:
    return set(ActionEvent.objects.filter(action__action_plan=plan, event="execute").values_list("host", flat=True))


def test_appliers_and_workers_of_three_machines_run_each_action_once(site: Site) -> None:
    site.start_command = start_fresh_command
    plans = [make_plan(graph(10), state="PENDING") for _ in range(8)]
    for host in ("worker-1", "worker-2"):
        site.worker(host)
    for host in ("control", "worker-1"):
        site.applier(host)
    wait_for(lambda: all(state(plan) == "SUCCEEDED" for plan in plans))
    assert executions() == 80
    assert not Action.objects.exclude(attempt=1).exists()
    assert set.union(*(hosts(plan) for plan in plans)) == {"worker-1", "worker-2"}


def test_worker_owns_the_action_and_obeys_a_new_exclusion(site: Site, tmp_path: Path) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    nap = {"action_type": "nap", "input_parameters": {"file": str(tmp_path / "over")}}
    plan.actions.filter(pk=action(plan, "a").pk).update(**nap)
    site.worker(workers=1)
    site.applier()
    wait_for(lambda: plan.actions.filter(action_type="nap", state="ONGOING").exists())
    owner = plan.actions.get(action_type="nap").owner
    assert (owner.name, owner.host) == (Service.WORKER, "worker-1")
    rule = make_exclusion(action_types=["nop"])
    (tmp_path / "over").touch()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    excluded = action(plan, "b")
    assert (excluded.state, excluded.exclusion) == ("SKIPPED", rule)
    assert ActionEvent.objects.get(action=excluded).host == "worker-1"


def test_action_of_a_killed_worker_is_repeated_by_another_worker(site: Site) -> None:
    plan = make_sleepy_plan(1)
    killed = site.worker("worker-1")
    site.applier()
    wait_for(lambda: is_asleep(plan))
    kill(killed, Service.WORKER)
    site.worker("worker-2")
    wait_for(lambda: state(plan) == "SUCCEEDED")
    assert list(plan.actions.order_by("pk").values_list("attempt", flat=True)) == [1, 2, 1]
    assert not ActionEvent.objects.filter(finish_time=None).exists()


def test_killed_child_process_of_a_worker_is_replaced_and_its_action_repeated(site: Site) -> None:
    plan = make_sleepy_plan(1)
    worker = site.worker(workers=1)
    site.applier()
    wait_for(lambda: is_asleep(plan))
    children = subprocess.run(["pgrep", "-P", str(worker.pid)], text=True, capture_output=True, check=True)
    gone = list(Service.objects.active().workers().values_list("pk", flat=True))
    for pid in children.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    end_leases(gone)
    wait_for(lambda: state(plan) == "SUCCEEDED")
    assert plan.actions.get(action_type="sleep").attempt == 2


def test_worker_completes_the_action_of_a_killed_applier_for_the_next_applier(site: Site) -> None:
    plan = make_sleepy_plan(3)
    site.worker()
    killed = site.applier()
    wait_for(lambda: is_asleep(plan))
    kill(killed)
    site.applier("spare")
    wait_for(lambda: state(plan) == "SUCCEEDED")
    assert not plan.actions.exclude(attempt=1).exists()


def test_stopped_applier_releases_its_plans_while_workers_continue_its_actions(site: Site, tmp_path: Path) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    plan.actions.update(action_type="nap", input_parameters={"file": str(tmp_path / "over")})
    site.worker()
    stopped = site.applier()
    wait_for(lambda: plan.actions.get().state == "ONGOING")
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=PATIENCE)
    assert stopped.returncode == 0
    assert plan.actions.get().state == "ONGOING"
    site.applier("spare")
    wait_for(lambda: ActionPlan.objects.exclude(applier=None).exists())
    (tmp_path / "over").touch()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    assert not plan.actions.exclude(attempt=1).exists()


def test_stopped_worker_completes_its_action_and_leaves_the_rest_to_other_workers(site: Site) -> None:
    plan = make_sleepy_plan(2)
    stopped = site.worker()
    site.applier()
    wait_for(lambda: is_asleep(plan))
    stopped.send_signal(signal.SIGTERM)
    stopped.communicate(timeout=PATIENCE)
    assert stopped.returncode == 0
    assert list(plan.actions.order_by("pk").values_list("state", "attempt")) == [
        ("SUCCEEDED", 1),
        ("SUCCEEDED", 1),
        ("PENDING", 0),
    ]
    assert not Service.objects.present().workers().exists()
    site.worker("worker-2")
    wait_for(lambda: state(plan) == "SUCCEEDED")


def test_worker_aborts_its_action_when_the_plan_is_cancelled(site: Site) -> None:
    plan = make_sleepy_plan(60)
    site.worker()
    site.applier()
    wait_for(lambda: is_asleep(plan))
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    wait_for(lambda: state(plan) == "CANCELLED")
    assert plan.actions.get(action_type="sleep").state == "CANCELLED"


def test_actions_are_sent_to_the_queue_of_their_type(site: Site) -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"]}, state="PENDING")
    plan.actions.filter(pk=action(plan, "b").pk).update(action_type="sleep", input_parameters={"duration": 0})
    routes = {"WATCHER_CELERY_QUEUES": f"sleep={site.queues[1]}"}
    site.worker("light", f"--queues={site.queues[0]}", **routes)
    site.worker("heavy", f"--queues={site.queues[1]}", **routes)
    site.applier(**routes)
    wait_for(lambda: state(plan) == "SUCCEEDED")
    events = ActionEvent.objects.filter(event="execute").order_by("pk").values_list("host", flat=True)
    assert list(events) == ["light", "heavy", "light"]


def test_queue_without_a_worker_does_not_delay_other_plans(site: Site) -> None:
    routes = {"WATCHER_CELERY_QUEUES": f"sleep={site.queues[1]}", "WATCHER_CELERY_JOBS": "4"}
    unread = make_plan({str(number): [] for number in range(6)}, state="PENDING")
    unread.actions.update(action_type="sleep", input_parameters={"duration": 0})
    site.applier(**routes, WATCHER_APPLIER_PLANS="1")
    wait_for(lambda: state(unread) == "ONGOING")
    other = make_plan({str(number): [] for number in range(6)}, state="PENDING")
    site.worker("light", f"--queues={site.queues[0]}", **routes)
    wait_for(lambda: state(other) == "SUCCEEDED")
    assert unread.actions.count_states() == {"PENDING": 6}


def test_action_that_never_ends_fails_and_its_worker_continues(site: Site) -> None:
    stuck, other = make_sleepy_plan(1000), make_plan({"a": []}, state="RECOMMENDED")
    stuck.actions.filter(action_type="sleep").update(action_type="stuck", input_parameters={}, timeout=1)
    site.worker(
        workers=1,
        WATCHER_ACTION_TIMEOUT_GRACE="0",
    )
    site.applier()
    wait_for(lambda: state(stuck) == "FAILED")
    assert "did not stop" in stuck.actions.get(action_type="stuck").status_message
    other.launch()
    wait_for(lambda: state(other) == "SUCCEEDED")


def test_plans_wait_for_a_broker_that_is_unavailable_at_the_start(site: Site) -> None:
    proxy = BrokerProxy()
    proxy.cut()
    site.broker = proxy.url
    plan = make_plan(graph(6), state="PENDING")
    applier, worker = site.applier(), site.start("run_worker", "--workers=2", WATCHER_HOST="worker-1")
    wait_for(lambda: state(plan) == "ONGOING")
    with pytest.raises(subprocess.TimeoutExpired):
        applier.wait(2)
    assert (worker.poll(), executions()) == (None, 0)
    proxy.restore()
    wait_for(lambda: state(plan) == "SUCCEEDED")
    assert executions() == 6


def test_plans_continue_after_interruptions_of_the_broker(site: Site) -> None:
    proxy = BrokerProxy()
    site.broker = proxy.url
    plans = [make_plan(graph(40), state="PENDING") for _ in range(3)]
    sleepy = make_sleepy_plan(2)
    site.worker()
    applier = site.applier()
    wait_for(lambda: is_asleep(sleepy))
    for _ in range(3):
        proxy.cut()
        wait_for(lambda: Service.objects.active().appliers().exists())
        proxy.restore()
    wait_for(lambda: all(state(plan) == "SUCCEEDED" for plan in [*plans, sleepy]))
    assert applier.poll() is None
    assert not Action.objects.exclude(attempt=1).exists()


@pytest.mark.parametrize(
    ("command", "arguments", "problem"),
    [
        ("run_worker", ["--queues=nowhere"], "no actions are sent to nowhere"),
        ("run_worker", ["--workers=0"], "must be a number from 1 to 1000"),
        ("run_applier", ["--workers=2"], "is for threads"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line_with_status_2(
    site: Site, command: str, arguments: list[str], problem: str
) -> None:
    process = site.start(command, *arguments)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert problem in errors
    assert errors.count("\n") == 1


def test_worker_without_the_celery_executor_is_refused(site: Site) -> None:
    process = site.start("run_worker", WATCHER_EXECUTOR="threads")
    _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors.count("\n")) == (2, 1)
    assert "WATCHER_EXECUTOR" in errors
