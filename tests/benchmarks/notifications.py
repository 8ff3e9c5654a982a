"""The cost of notifications for an applier, and the throughput of a relay."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from django.db import connections
from kombu import Connection

from tests.benchmarks.applier import CONSTANT_COMMITS, SIZE, Run, independent, run_plan
from tests.benchmarks.table import Line
from tests.broker import BROKER_URL, broker_answers
from watcher_site.models import Delivery, Notification

# The required share of the rate of an applier without a subscription.
KEPT_RATE = 0.7
TRANSPORT_URL = BROKER_URL.replace("amqp://", "rabbit://").removesuffix("/")
# Each action starts, is updated twice, and ends.
EACH = 4


def measure(database: str) -> Iterator[Line]:
    """Return the lines of the rate and commits of an applier with and without an outbox, and the rate of a relay."""
    if not broker_answers():
        print("No RabbitMQ server answers at WATCHER_TEST_BROKER_URL: notifications are left out.")  # noqa: T201
        return
    with own_topic() as topic:
        listened = {"WATCHER_NOTIFICATION_URL": TRANSPORT_URL, "WATCHER_NOTIFICATION_TOPICS": topic}
        off, on = alternate(database, listened)
        work = f"applier, with an outbox: {SIZE:,} independent nops"
        yield Line(work, on.rate, "without", off.rate, KEPT_RATE, unit="/s", at_least=True)
        yield Line("  commits", on.commits, "actions", SIZE, 2, "constant", CONSTANT_COMMITS, unit="")
        relayed = relay(listened)
        yield Line("relay to RabbitMQ", relayed, f"{EACH} x applier", EACH * on.rate, 1, unit="/s", at_least=True)


def alternate(database: str, listened: dict[str, str]) -> tuple[Run, Run]:
    """Return the best of several alternating runs without and with a subscription."""
    runs = [(run_plan(database, independent(SIZE)), run_plan(database, independent(SIZE), **listened)) for _ in "123"]
    without, listening = zip(*runs, strict=True)
    return max(without, key=lambda run: run.rate), max(listening, key=lambda run: run.rate)


def relay(environment: dict[str, str]) -> float:
    """Relay all notifications of the outbox, and return their rate per second, without the start of the relay.

    Raises:
        RuntimeError: some were left.
    """
    number = Notification.objects.undispatched().count()
    connections.close_all()
    command = [sys.executable, "manage.py", "relay_notifications"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | environment)
    try:
        while Notification.objects.undispatched().count() == number:
            time.sleep(0.005)
        begin = time.perf_counter()
        while Notification.objects.undispatched().exists() or Delivery.objects.exists():
            if process.poll() is not None:
                raise RuntimeError(f"The relay left with status {process.returncode}.")
            time.sleep(0.01)
        return number / (time.perf_counter() - begin)
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def own_topic() -> Iterator[str]:
    topic = f"watcher-benchmark-{uuid4()}"
    try:
        yield topic
    finally:
        with Connection(BROKER_URL) as connection:
            for priority in ("info", "error"):
                connection.channel().queue_delete(f"{topic}.{priority}")
