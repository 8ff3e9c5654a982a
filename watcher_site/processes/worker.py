"""The base class of processes that run until a signal, such as the applier, and their heartbeat."""

import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any, ClassVar

import structlog
from django.conf import settings
from django.db import Error, InterfaceError, OperationalError, ProgrammingError, connection

from watcher_site.models import Service
from watcher_site.monitoring.metrics import database_errors, leases_lost
from watcher_site.monitoring.tracing import tracing
from watcher_site.processes.main_loop import main_loop

log = structlog.get_logger(__name__)
# A clock that also runs while the machine is suspended, if the system has one.
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# The errors that are raised while the database does not respond.
LOST_DATABASE = (InterfaceError, OperationalError)
# Errors of the database, of its schema or of the machine, which are not caused by the current record.
NOT_OF_ONE_RECORD = (*LOST_DATABASE, ProgrammingError, MemoryError)
# The seconds within which a turn of a main loop ends, apart from its pause. Turns take milliseconds, those with
# statements about very large plans some seconds, and a statement that waits for a lock or for the database longer.
LONGEST_TURN = 900


class Heartbeat:
    """The thread that renews a service's row three times within `settings.SERVICE_DOWN_TIME`.

    Args:
        find_problem: returns the reason why the lease is not renewed, such as a main loop that hangs, so that other
            processes take over the work.
    """

    def __init__(self, service: Service, find_problem: Callable[[], str | None] = lambda: None) -> None:
        self.service, self.find_problem = service, find_problem
        self.seen = time.clock_gettime(CLOCK)
        self.row_lost = False
        self.stopping = Event()
        self.thread = Thread(target=self.run, name="heartbeat", daemon=True)

    @property
    def lost(self) -> bool:
        """Return whether the lease is lost: the row was deleted, or the heartbeat thread has died."""
        died = self.thread.ident is not None and not self.thread.is_alive() and not self.stopping.is_set()
        return self.row_lost or died

    @property
    def holds(self) -> bool:
        """Return whether this process certainly still has the lease.

        It does not after it was paused for longer than the lease, until the next heartbeat.
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
        """Write one heartbeat. After an error of the database, the next one tries again."""
        if problem := self.find_problem():
            log.error("heartbeat omitted", service=str(self.service), problem=problem)
            return
        started = time.clock_gettime(CLOCK)
        try:
            self.row_lost = not self.service.beat()
            self.seen = started
        except Error as problem:
            database_errors.labels("heartbeat").inc()
            log.warning("heartbeat failed", service=str(self.service), problem=str(problem))
            with suppress(Error):
                connection.close()


class Worker(ABC):
    """The base class of processes that take work from the database, and may be killed at any moment.

    `run` is the loop, and `step` one iteration. While the database does not respond, the process waits. Its service
    row is the lease on the records that it owns.
    """

    kind: ClassVar[str]
    """The name of the service."""
    longest_turn: float = LONGEST_TURN
    """The seconds after which a turn of the loop, apart from its pause, counts as hung."""

    def __init__(self, host: str | None = None) -> None:
        self.host = host or settings.HOST
        self.stopping = False
        self.register()

    def register(self) -> None:
        self.service = Service.register(self.kind, self.host)
        self.heartbeat = Heartbeat(self.service, main_loop.find_problem)
        self.log = structlog.get_logger(type(self).__module__).bind(service=self.service.pk, host=self.host)

    def stop_on_signals(self) -> None:
        """End `run` on SIGTERM and SIGINT, after the current work has ended."""

        def request_stop(*_: Any) -> None:
            # A signal handler may interrupt any code: it only sets a flag.
            self.stopping = True

        signal.signal(signal.SIGTERM, request_stop)
        signal.signal(signal.SIGINT, request_stop)

    def run(self, once: bool = False) -> None:
        """Run until a signal, or with ``once`` until the database contains no more work."""
        self.heartbeat.start()
        self.log.info(f"{self.kind} started")
        try:
            self.prepare()
            while not self.stopping:
                main_loop.begin_turn(self.longest_turn + settings.POLL_INTERVAL)
                self.advance()
                if once and self.is_idle:
                    break
                self.rest()
        finally:
            main_loop.end()
            self.stop()

    def advance(self) -> None:
        """Run one step. If the database does not respond, wait and continue later."""
        try:
            self.step()
        except LOST_DATABASE as problem:
            database_errors.labels("step").inc()
            self.log.warning("database lost", problem=str(problem))
            connection.close()
            self.await_database()

    def renew(self) -> None:
        """Register a new service row after the lease was lost, because other processes may own the former work."""
        leases_lost.labels(self.kind).inc()
        self.log.warning("lease lost")
        self.heartbeat.stop()
        self.service.retire()
        self.register()
        self.heartbeat.start()

    def stop(self) -> None:
        """Stop the heartbeat and delete the service's row. If the database is unavailable, the lease expires."""
        self.heartbeat.stop()
        with suppress(*LOST_DATABASE):
            self.service.retire()
        self.log.info(f"{self.kind} stopped")
        tracing.stop()

    # To be implemented by subclasses.

    def prepare(self) -> None:  # noqa: B027 (optional)
        """Prepare the process before its first step."""

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Return whether no work is in progress and the last poll found none."""

    @abstractmethod
    def step(self) -> None:
        """Find work, and do a part of it."""

    @abstractmethod
    def rest(self) -> None:
        """Wait until the next step."""

    @abstractmethod
    def await_database(self) -> None:
        """Wait `settings.POLL_INTERVAL` seconds before the next poll, after a failed one."""
