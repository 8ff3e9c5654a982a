"""Warnings about queues with waiting actions that no worker reads."""

from collections.abc import Iterator

import pytest
from kombu import Connection, Consumer
from pytest_django import Settings
from structlog.testing import capture_logs

from plans.workers.transport import QueuesWithoutWorkers
from tests.broker import BROKER_URL, own_queues
from watcher_site.celery import make_queue

pytestmark = pytest.mark.rabbitmq


@pytest.fixture
def connection() -> Iterator[Connection]:
    with Connection(BROKER_URL) as made:
        yield made


@pytest.fixture
def queue() -> Iterator[str]:
    with own_queues() as names:
        yield names[0]


def levels(connection: Connection, unread: QueuesWithoutWorkers, *queues: str) -> list[str]:
    with capture_logs() as lines:
        unread.check(connection, queues)
    return [line["log_level"] for line in lines]


def test_unread_queue_is_logged_once(connection: Connection, queue: str, settings: Settings) -> None:
    settings.SERVICE_DOWN_TIME = 0
    unread = QueuesWithoutWorkers()
    assert [levels(connection, unread, queue) for _ in range(2)] == [["warning"], []]


def test_queue_unread_for_a_short_time_is_not_logged(connection: Connection, queue: str, settings: Settings) -> None:
    settings.SERVICE_DOWN_TIME = 3600
    assert levels(connection, QueuesWithoutWorkers(), queue) == []


def test_queue_that_is_read_again_is_logged(connection: Connection, queue: str, settings: Settings) -> None:
    settings.SERVICE_DOWN_TIME = 0
    unread = QueuesWithoutWorkers()
    unread.check(connection, [queue])
    with Consumer(connection, [make_queue(queue)]):
        assert [levels(connection, unread, queue) for _ in range(2)] == [["info"], []]
