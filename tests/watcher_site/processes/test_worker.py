"""The loop of the applier and the decision engine, and database outages."""

import os
import signal
from collections.abc import Iterator

import pytest
from django.db import OperationalError
from django.utils import timezone
from pytest_django import Settings

from audits.engine.engine import DecisionEngine
from plans.applier.applier import Applier
from tests.plans.inline import InlineExecutor
from watcher_site.models import Service
from watcher_site.processes.worker import Worker

pytestmark = pytest.mark.django_db(transaction=True)


class StepWorker(Worker):
    """A worker with a list of steps, each of which succeeds or raises."""

    kind = Service.APPLIER

    def __init__(self, *steps: Exception | str) -> None:
        super().__init__("here")
        self.steps = list(steps)
        self.done: list[str] = []
        self.waits = 0

    @property
    def is_idle(self) -> bool:
        return not self.steps

    def step(self) -> None:
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        self.done.append(step)

    def rest(self) -> None:
        pass

    def await_database(self) -> None:
        self.waits += 1


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_worker_continues_after_a_database_outage() -> None:
    worker = StepWorker("one", OperationalError("gone"), OperationalError("gone"), "two")
    worker.run(once=True)
    assert (worker.done, worker.waits) == (["one", "two"], 2)


def test_other_error_ends_the_worker_and_its_lease() -> None:
    with pytest.raises(KeyError):
        StepWorker(KeyError("bug"), "two").run(once=True)
    assert not Service.objects.present().exists()


def test_worker_stops_during_a_database_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Service) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(Service, "retire", fail)
    worker = StepWorker("one")
    worker.run(once=True)
    assert worker.done == ["one"]
    assert not worker.heartbeat.thread.is_alive()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_worker_after_the_current_step(
    handlers: None, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    worker = StepWorker("one", "two")
    worker.stop_on_signals()
    step = worker.step

    def interrupted() -> None:
        os.kill(os.getpid(), number)
        step()

    monkeypatch.setattr(worker, "step", interrupted)
    worker.run()
    assert worker.done == ["one"]


@pytest.mark.parametrize("make", [lambda: Applier(InlineExecutor()), DecisionEngine], ids=["applier", "engine"])
def test_worker_is_not_idle_after_a_database_error(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, make: type[Worker]
) -> None:
    settings.POLL_INTERVAL = 0
    worker = make()
    worker.advance()
    assert worker.is_idle

    def fail() -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(timezone, "now", fail)
    worker.advance()
    monkeypatch.undo()
    assert not worker.is_idle
    worker.stop()
