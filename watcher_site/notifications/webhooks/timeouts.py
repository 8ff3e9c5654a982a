"""A limit to how long a request takes in all.

The timeouts of sockets hold for each read by itself: an answer that comes drop by drop keeps to them, and never ends.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer, local
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

# The `Watch` over the request that this thread has under way.
under_way = local()


class Watch:
    """Interrupts a request when its time is over: one timeout for connecting and one for the answer."""

    connection: Any = None
    is_over = False
    timer: Timer | None = None

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def begin(self) -> None:
        """Start the timer."""
        self.cease()
        self.timer = Timer(self.seconds, self.end)
        self.timer.daemon = True
        self.timer.start()

    def cease(self) -> None:
        if self.timer:
            self.timer.cancel()

    def require_time(self) -> None:
        """Raise `requests.Timeout` if the time is over: what was read until then may be the half of it."""
        if self.is_over:
            raise requests.Timeout

    def end(self) -> None:
        self.is_over = True
        with suppress(AttributeError, OSError, TypeError):
            # A thread that reads from or writes to the socket sees the end of the connection.
            socket.socket.shutdown(self.connection.sock, socket.SHUT_RDWR)


class Watched:
    """A part of connections."""

    def connect(self) -> None:
        watch = self.be_watched()
        super().connect()  # type: ignore[misc]
        if watch:
            watch.begin()

    def request(self, *arguments: Any, **named: Any) -> None:
        self.be_watched()
        super().request(*arguments, **named)  # type: ignore[misc]

    def be_watched(self) -> Watch | None:
        watch: Watch | None = getattr(under_way, "watch", None)
        if watch:
            watch.connection = self
        return watch


class WatchedConnection(Watched, HTTPConnection):
    """One over HTTP."""


class WatchedSecureConnection(Watched, HTTPSConnection):
    """One over HTTPS."""


class WatchedPool(HTTPConnectionPool):
    ConnectionCls = WatchedConnection


class WatchedSecurePool(HTTPSConnectionPool):
    ConnectionCls = WatchedSecureConnection


def make_watched(session: requests.Session) -> None:
    """Make the requests of a session interruptible by `ends_within`."""
    for adapter in session.adapters.values():
        if isinstance(adapter, HTTPAdapter):
            adapter.poolmanager.pool_classes_by_scheme = {"http": WatchedPool, "https": WatchedSecurePool}


@contextmanager
def ends_within(seconds: float) -> Iterator[Watch]:
    """Interrupt a request of this thread that is not answered in full ``seconds`` after it was connected.

    Raises:
        requests.Timeout: it was interrupted.
    """
    watch = under_way.watch = Watch(seconds)
    watch.begin()
    try:
        yield watch
    except (requests.RequestException, OSError) as problem:
        if watch.is_over:
            raise requests.Timeout from problem
        raise
    finally:
        watch.cease()
        under_way.watch = None
