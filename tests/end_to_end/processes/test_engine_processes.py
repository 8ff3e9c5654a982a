"""Real decision engine processes: killed, stopped, and started beside others."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from django.utils import timezone
from pytest_django import Settings

from audits.models import Audit, Goal
from audits.operations.creation import create_audit
from plans.models import ActionPlan
from tests.builders import make_node
from tests.end_to_end.processes.test_applier_processes import kill
from tests.processes import Process, start_command, start_fresh_command
from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.site_process import free_port_number
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

Start = Callable[..., Process]


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "working"


@pytest.fixture
def start(mark: Path) -> Iterator[Start]:
    """Start decision engines on the test database, with the slow strategy in the place of dummy."""
    environment = {
        "WATCHER_POLL_INTERVAL": "0.05",
        "WATCHER_STRATEGIES": "tests.audits.slow_strategy.Slow",
        "SLOW_STRATEGY_FILE": str(mark),
    }
    processes: list[Process] = []

    def run(*arguments: str, starter: Start = start_command, **variables: str) -> Process:
        processes.append(starter("run_decision_engine", *arguments, **environment | variables))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        process.wait()


def dummy() -> Audit:
    make_node("compute1")
    return create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")


def check_health(port: int) -> int:
    try:
        return int(urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE).status)
    except HTTPError as problem:
        return problem.code


def test_engine_that_runs_an_audit_is_healthy(start: Start, mark: Path) -> None:
    dummy()
    port = free_port_number()
    start(WATCHER_METRICS_PORTS=f"decision-engine={port}")
    wait_for(mark.exists)
    assert check_health(port) == 200


def test_engine_whose_audit_hangs_is_unhealthy_and_another_engine_runs_the_audit(
    start: Start, mark: Path, settings: Settings
) -> None:
    settings.SERVICE_DOWN_TIME = 1
    audit = dummy()
    port = free_port_number()
    limits = {"WATCHER_LONGEST_AUDIT": "1", "WATCHER_SERVICE_DOWN_TIME": "1"}
    start(WATCHER_METRICS_PORTS=f"decision-engine={port}", **limits)
    wait_for(mark.exists)
    wait_for(lambda: check_health(port) == 503)
    hung = Audit.objects.get(pk=audit.pk).decision_engine_id
    wait_for(lambda: not Service.objects.active().exists())
    start(WATCHER_SERVICE_DOWN_TIME="1")
    wait_for(lambda: Audit.objects.get(pk=audit.pk).decision_engine_id not in (hung, None))


def state(audit: Audit) -> str:
    return Audit.objects.get(pk=audit.pk).state


def test_audit_of_a_killed_engine_is_run_by_another_engine(start: Start, mark: Path) -> None:
    audit = dummy()
    first = start()
    wait_for(mark.exists)
    kill(first, Service.DECISION_ENGINE)
    mark.unlink()
    start()
    wait_for(mark.exists)
    mark.unlink()
    wait_for(lambda: state(audit) == "SUCCEEDED")
    assert ActionPlan.objects.filter(audit=audit).count() == 1


def test_run_of_a_continuous_audit_of_a_killed_engine_is_repeated_once(start: Start, mark: Path) -> None:
    make_node("compute1")
    audit = create_audit(audit_type="CONTINUOUS", goal="dummy", strategy="dummy", interval="3600")
    first = start()
    wait_for(mark.exists)
    kill(first, Service.DECISION_ENGINE)
    mark.unlink()
    start()
    start()
    wait_for(mark.exists)
    mark.unlink()
    wait_for(Audit.objects.filter(pk=audit.pk, decision_engine=None, next_run_time__gt=timezone.now()).exists)
    assert (state(audit), ActionPlan.objects.filter(audit=audit).count()) == ("ONGOING", 1)


def test_stopped_engine_completes_its_audit(start: Start, mark: Path) -> None:
    audit = dummy()
    engine = start()
    wait_for(mark.exists)
    engine.terminate()
    time.sleep(0.2)
    mark.unlink()
    assert (engine.wait(PATIENCE), state(audit)) == (0, "SUCCEEDED")


def test_stopped_engine_retires_its_service(start: Start) -> None:
    Goal.objects.all().delete()
    engine = start(starter=start_fresh_command)
    wait_for(Goal.objects.exists)  # The engine has started.
    engine.terminate()
    engine.wait(PATIENCE)
    assert not Service.objects.present().filter(name=Service.DECISION_ENGINE).exists()


def test_engine_keeps_its_lease_during_a_long_run(start: Start, mark: Path) -> None:
    audit = dummy()
    start(WATCHER_SERVICE_DOWN_TIME="3")
    wait_for(mark.exists)
    began = timezone.now()
    wait_for(Service.objects.filter(last_seen_up__gt=began + timedelta(seconds=3)).exists)
    start("--once", WATCHER_SERVICE_DOWN_TIME="3").wait(PATIENCE)
    held = state(audit)
    mark.unlink()
    wait_for(lambda: state(audit) == "SUCCEEDED")
    assert (held, ActionPlan.objects.filter(audit=audit).count()) == ("ONGOING", 1)
