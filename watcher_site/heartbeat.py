"""The signs of life of a process, given by a thread of its own so that no long work delays them."""

import time
from threading import Event, Thread

import structlog
from django.conf import settings
from django.db import DatabaseError, connection

from watcher_site.models import Service

log = structlog.get_logger(__name__)


class Heartbeat:
    """Keeps a service's row alive, three times within `settings.SERVICE_DOWN_TIME`, from `start` to `stop`."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.seen = time.monotonic()
        self.lost = False
        self.stopping = Event()
        self.thread = Thread(target=self.run, name="heartbeat", daemon=True)

    @property
    def holds(self) -> bool:
        """Whether the lease is certainly still ours.

        Also false in a process that slept through its lease and has not yet looked at its row again.
        """
        return not self.lost and time.monotonic() - self.seen < settings.SERVICE_DOWN_TIME

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join()

    def run(self) -> None:
        try:
            while not (self.lost or self.stopping.wait(settings.SERVICE_DOWN_TIME / 3)):
                self.beat()
        finally:
            connection.close()

    def beat(self) -> None:
        """Beat once; a database that does not answer is asked again at the next beat."""
        began = time.monotonic()
        try:
            self.lost = not self.service.beat()
            self.seen = began
        except DatabaseError as problem:
            log.warning("heartbeat failed", service=str(self.service), problem=str(problem))
            connection.close()
