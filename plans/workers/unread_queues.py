"""Detects queues with waiting actions that no worker reads, so that a person is notified."""

import time
from collections.abc import Iterable

import structlog
from django.conf import settings
from kombu import Connection

from watcher_site.celery import make_queue

log = structlog.get_logger(__name__)


class UnreadQueues:
    """Since when each queue in which something waits has had no worker, by what the broker says."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}
        self.reported: set[str] = set()

    def look(self, connection: Connection, queues: Iterable[str]) -> None:
        """Warn once of each that has had no worker for `settings.SERVICE_DOWN_TIME`, and say when it has one again."""
        now = time.monotonic()
        unread = {queue for queue in queues if not count_readers(connection, queue)}
        self.since = {queue: self.since.get(queue, now) for queue in unread}
        for queue in self.reported - unread:
            log.info("queue is read again, or nothing waits in it", queue=queue)
        self.reported &= unread
        for queue, since in self.since.items():
            if queue not in self.reported and now - since >= settings.SERVICE_DOWN_TIME:
                log.warning("actions wait in a queue that no worker reads", queue=queue)
                self.reported.add(queue)


def count_readers(connection: Connection, queue: str) -> int:
    """Return how many workers take actions out of a queue, which is made if there is none."""
    with connection.channel() as channel:
        return int(make_queue(queue)(channel).queue_declare().consumer_count)
