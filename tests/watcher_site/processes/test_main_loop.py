"""The main loop of a process: its health check and its lease while it is busy, and while it hangs."""

import re
from collections.abc import Iterator
from threading import Event, Thread
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from django.db import connection
from prometheus_client import CollectorRegistry
from pytest_django import Settings

from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.processes.test_worker import StepWorker
from watcher_site.models import Service
from watcher_site.monitoring.ports import listen
from watcher_site.monitoring.server import FindProblem, serve
from watcher_site.processes.main_loop import MainLoop, main_loop
from watcher_site.processes.worker import Heartbeat


def serve_check(find_problem: FindProblem | None) -> int:
    listener = listen(0, "127.0.0.1")
    serve(listener, CollectorRegistry(), find_problem)
    return int(listener.getsockname()[1])


def ask(port: int) -> tuple[int, str]:
    try:
        answer = urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE)
    except HTTPError as problem:
        answer = problem
    return answer.status, answer.read().decode()


class BusyWorker(StepWorker):
    """A worker whose only step takes until it is released."""

    def __init__(self, longest_turn: float) -> None:
        super().__init__("work")
        self.longest_turn = longest_turn
        self.began, self.released = Event(), Event()

    def step(self) -> None:
        self.began.set()
        self.released.wait(PATIENCE)
        super().step()


@pytest.fixture
def workers(settings: Settings) -> Iterator[list[BusyWorker]]:
    settings.POLL_INTERVAL = 0.01
    started: list[BusyWorker] = []
    yield started
    for worker in started:
        worker.released.set()
    wait_for(lambda: not Service.objects.present().exists())


def run(worker: BusyWorker) -> None:
    worker.run(once=True)
    connection.close()


def start(worker: BusyWorker) -> BusyWorker:
    Thread(target=run, args=[worker], daemon=True).start()
    assert worker.began.wait(PATIENCE)
    return worker


@pytest.mark.django_db(transaction=True)
def test_hung_loop_is_unhealthy_with_its_reason_in_one_line(workers: list[BusyWorker]) -> None:
    workers.append(start(BusyWorker(longest_turn=0.01)))
    port = serve_check(main_loop.find_problem)
    wait_for(lambda: ask(port)[0] == 503)
    assert re.fullmatch(r"The main loop has not ended a turn for \d+ seconds, more than 0\.\n", ask(port)[1])


@pytest.mark.django_db(transaction=True)
def test_busy_loop_is_healthy(workers: list[BusyWorker]) -> None:
    workers.append(start(BusyWorker(longest_turn=3600)))
    assert ask(serve_check(main_loop.find_problem)) == (200, "The main loop runs.\n")


def test_process_without_a_loop_has_no_health_check() -> None:
    assert ask(serve_check(None))[0] == 404


def test_loop_is_healthy_before_its_first_turn_and_after_its_last() -> None:
    loop = MainLoop()
    before = loop.find_problem()
    loop.begin_turn(limit=-1)
    assert loop.find_problem() is not None
    loop.end()
    assert (before, loop.find_problem()) == (None, None)


@pytest.mark.django_db
def test_heartbeat_of_a_hung_loop_does_not_renew_the_lease() -> None:
    loop, service = MainLoop(), Service.register(Service.APPLIER, "here")
    before = Service.objects.get(pk=service.pk).last_seen_up
    loop.begin_turn(limit=-1)
    Heartbeat(service, loop.find_problem).beat()
    assert Service.objects.get(pk=service.pk).last_seen_up == before


@pytest.mark.django_db
def test_lease_is_renewed_when_a_hung_loop_continues() -> None:
    loop, service = MainLoop(), Service.register(Service.APPLIER, "here")
    heartbeat = Heartbeat(service, loop.find_problem)
    loop.begin_turn(limit=-1)
    heartbeat.beat()
    loop.begin_turn(limit=60)
    heartbeat.beat()
    assert (heartbeat.lost, heartbeat.holds) == (False, True)
