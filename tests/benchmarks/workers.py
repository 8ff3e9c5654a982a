"""The rate of actions of an applier and two worker processes with a broker."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from tests.benchmarks.applier import graphs, raw_rate, run_plan
from tests.benchmarks.table import Line
from tests.broker import BROKER_URL, broker_answers, own_queues
from watcher_site.models import Service

PROCESSES = 2
SHARE = 1 / 15
# How long they may take to start, in seconds.
START = 60


def measure(database: str) -> list[Line]:
    """Return a line for each graph, with the rate of raw updates around its run; no line without a broker."""
    if not broker_answers():
        print("No RabbitMQ server answers at WATCHER_TEST_BROKER_URL: workers are left out.")  # noqa: T201
        return []
    lines = []
    with own_queues() as (queue,):
        environment = {
            "WATCHER_EXECUTOR": "celery",
            "CELERY_BROKER_URL": BROKER_URL,
            "WATCHER_CELERY_QUEUE": queue,
        }
        with workers(**environment):
            for work, graph in graphs().items():
                before = raw_rate(database)
                run = run_plan(database, graph, **environment)
                raw = median([before, raw_rate(database)])
                lines.append(Line(f"workers: {work}", run.rate, "raw commits", raw, SHARE, unit="/s", at_least=True))
    return lines


@contextmanager
def workers(**environment: str) -> Iterator[None]:
    """Run a worker with several processes during the block.

    Raises:
        RuntimeError: it does not start.
    """
    command = [sys.executable, "manage.py", "run_worker", f"--workers={PROCESSES}"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | environment)
    try:
        deadline = time.monotonic() + START
        while Service.objects.active().workers().count() < PROCESSES:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The worker does not start (status {process.returncode}).")
            time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(60)
