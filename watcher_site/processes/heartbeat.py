"""The signs of life of a process, given by a thread of its own so that no long work delays them."""

import time
from contextlib import suppress
from threading import Event, Thread

import structlog
from django.conf import settings
from django.db import Error, connection

from watcher_site.models import Service

log = structlog.get_logger(__name__)
# It goes on while the machine is suspended, where there is such a clock.
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Heartbeat:
    """Keeps a service's row alive, three times within `settings.SERVICE_DOWN_TIME`, from `start` to `stop`."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.seen = time.clock_gettime(CLOCK)
        self.row_lost = False
        self.stopping = Event()
        self.thread = Thread(target=self.run, name="heartbeat", daemon=True)

    @property
    def lost(self) -> bool:
        """Return whether the lease is lost for good: the row is no longer ours, or the heartbeat thread has died."""
        died = self.thread.ident is not None and not self.thread.is_alive() and not self.stopping.is_set()
        return self.row_lost or died

    @property
    def holds(self) -> bool:
        """Return whether the lease is certainly still ours.

        Also false in a process that slept through its lease and has not yet looked at its row again.
        """
        return not self.lost and time.clock_gettime(CLOCK) - self.seen < settings.SERVICE_DOWN_TIME

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        self.stopping.set()
        if self.thread.is_alive():
            self.thread.join()

    def run(self) -> None:
        try:
            while not (self.row_lost or self.stopping.wait(settings.SERVICE_DOWN_TIME / 3)):
                self.beat()
        finally:
            connection.close()

    def beat(self) -> None:
        """Write one heartbeat; a database that does not answer is tried again at the next one."""
        began = time.clock_gettime(CLOCK)
        try:
            self.row_lost = not self.service.beat()
            self.seen = began
        except Error as problem:
            log.warning("heartbeat failed", service=str(self.service), problem=str(problem))
            with suppress(Error):
                connection.close()
