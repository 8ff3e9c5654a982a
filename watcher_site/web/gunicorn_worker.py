"""The worker class of gunicorn, which passes requests to threads only when they have arrived completely.

gunicorn's threaded worker passes a connection to a thread before the request has arrived, and the thread waits for the
rest without a time limit, so that a few idle or slow clients can block all threads. Here the main loop of a
process collects a request; a thread gets it when its head and its body are there, and reads nothing from the
connection. gunicorn parses it as before: this module only has to know where a request ends.

It builds on internals of gunicorn 27, which pyproject.toml therefore names. Other servers do not replace it: granian
2.8 collects the head of a request before it takes a thread, but not the body; waitress 3.0 collects both, but serves
from one process, and its timeout is for silence, not for the time that a whole request takes.
"""

import errno
import re
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Any

from django.conf import settings
from gunicorn.http.unreader import Unreader
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker

END_OF_HEAD = re.compile(rb"\n\r?\n")
LENGTH = re.compile(rb"^content-length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
CHUNKED = re.compile(rb"^transfer-encoding[ \t]*:", re.IGNORECASE | re.MULTILINE)
EXPECTS = re.compile(rb"^expect[ \t]*:[ \t]*100-continue", re.IGNORECASE | re.MULTILINE)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
# Greater than gunicorn's limit for a head, so that gunicorn refuses the request.
LONGEST_HEAD = 1024 * 1024
RECEIVE_BYTES = 64 * 1024
# The maximum memory of all incomplete requests of a process.
MOST_INCOMPLETE_BYTES = 64 * 1024 * 1024
# The seconds for which the rest of a refused request is read and discarded, so that the client receives the response.
LINGER_SECONDS = 2.0


def is_complete(received: bytes | bytearray) -> bool:
    """Return whether a request can be parsed without waiting for more data.

    A body without a length, or with an excessive one, is refused without being read: the head is sufficient.
    """
    head = END_OF_HEAD.search(received)
    if head is None:
        return len(received) > LONGEST_HEAD
    length = LENGTH.search(received, 0, head.end())
    if length is None or CHUNKED.search(received, 0, head.end()):
        return True
    needed = int(length[1])
    return needed > settings.DATA_UPLOAD_MAX_MEMORY_SIZE or len(received) >= head.end() + needed


class ReceivedUnreader(Unreader):
    """The received bytes of a connection, for gunicorn's parser, which does not wait for more."""

    def __init__(self, received: bytes) -> None:
        super().__init__()
        self.exhausted = False
        self.unread(received)

    def chunk(self, size_hint: int | None = None) -> bytes:
        self.exhausted = True
        return b""


class Connection(TConn):
    """A connection with the received data that was not parsed yet."""

    def __init__(self, worker: "BufferingWorker", sock: socket.socket, client: Any, server: Any) -> None:
        super().__init__(worker.cfg, sock, client, server)
        self.worker = worker
        self.received = bytearray()
        self.is_open, self.continued = True, False
        # The main loop waits for the first byte, instead of gunicorn.
        self.data_ready = True
        # The time for sending a response is limited, too. A timeout set in Python would cost another system call for
        # each.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", ceil(settings.REQUEST_TIMEOUT), 0))

    def init(self) -> None:
        """Create the parser, in the thread of the request."""
        super().init()
        if self.cfg.is_ssl:
            return
        self.parser.unreader = ReceivedUnreader(bytes(self.received))
        self.received.clear()
        self.continued = False

    def receive(self) -> bool:
        """Read the available bytes, and return whether there were any. Only the main loop calls this."""
        try:
            self.sock.setblocking(False)
            data = self.sock.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        self.received += data
        self.is_open = bool(data)
        return self.is_open

    def take_rest(self) -> None:
        """Keep the bytes that the parser did not read, which belong to the next request."""
        if self.parser is not None and not self.cfg.is_ssl:
            self.received += self.parser.unreader.take_buffered()

    def close(self, graceful: bool = False) -> None:
        if graceful and not self.cfg.is_ssl:
            self.worker.linger(self)
        else:
            super().close(graceful)


class BufferingWorker(ThreadWorker):
    """gunicorn's threaded worker, with requests that the main loop of the process collects.

    ``pending_conns`` are the connections with incomplete requests, each with the time at which it is closed.
    """

    pending_conns: deque[Connection]

    def accept(self, listener: socket.socket) -> None:
        try:
            client_socket, client_address = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            # Another process accepted it, or the client has disconnected.
            return
        except OSError as problem:
            if problem.errno not in (errno.EMFILE, errno.ENFILE) or not self.pending_conns:
                raise
            self.drop_oldest()
            return
        self.nr_conns += 1
        if self.nr_conns >= self.worker_connections:
            self.drop_oldest()
        self.enqueue_req(Connection(self, client_socket, client_address, listener.getsockname()))

    def enqueue_req(self, conn: Connection) -> None:
        """Pass a connection to a thread if a complete request has arrived; otherwise wait for it."""
        conn.take_rest()
        if self.cfg.is_ssl or self.is_ready(conn) or (conn.receive() and self.is_ready(conn)):
            super().enqueue_req(conn)
        elif conn.is_open:
            self.wait_for(conn, self.receive, settings.REQUEST_TIMEOUT)
            self.send_continue(conn)
        else:
            self.nr_conns -= 1
            conn.close()

    def is_ready(self, conn: Connection) -> bool:
        return bool(conn.received) and is_complete(conn.received)

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        """Close a connection after a request whose body did not arrive completely."""
        stays_open = super()._keepalive_after(conn, keepalive)
        return stays_open and (self.cfg.is_ssl or not conn.parser.unreader.exhausted)

    def wait_for(self, conn: Connection, callback: Callable[[Connection, Any], None], seconds: float) -> None:
        conn.timeout = time.monotonic() + seconds
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(callback, conn))

    def wait_no_more(self, conn: Connection) -> None:
        self.pending_conns.remove(conn)
        self.poller.unregister(conn.sock)

    def receive(self, conn: Connection, _: Any) -> None:
        """Read the available bytes of a request, and pass it to a thread if it is complete."""
        if not conn.receive():
            if not conn.is_open:
                self.drop(conn)
        elif self.is_ready(conn):
            self.wait_no_more(conn)
            super().enqueue_req(conn)
        else:
            self.send_continue(conn)
            if len(conn.received) > RECEIVE_BYTES and self.incomplete_bytes > MOST_INCOMPLETE_BYTES:
                self.drop_oldest()

    def send_continue(self, conn: Connection) -> None:
        """Send 100 Continue to a client that waits for it."""
        head = None if conn.continued else END_OF_HEAD.search(conn.received)
        if head is None or not EXPECTS.search(conn.received, 0, head.end()):
            return
        conn.continued = True
        try:
            conn.sock.send(CONTINUE)
        except OSError:
            self.drop(conn)

    @property
    def incomplete_bytes(self) -> int:
        return sum(len(conn.received) for conn in self.pending_conns)

    def linger(self, conn: Connection) -> None:
        """Close a connection after its response, once the client has read it."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            self.wait_for(conn, self.discard, LINGER_SECONDS)
            self.nr_conns += 1
        except (OSError, ValueError, RuntimeError):
            conn.close()

    def discard(self, conn: Connection, _: Any) -> None:
        conn.receive()
        conn.received.clear()
        if not conn.is_open:
            self.drop(conn)

    def drop(self, conn: Connection) -> None:
        self.wait_no_more(conn)
        self.nr_conns -= 1
        conn.close()

    def drop_oldest(self) -> None:
        """Close the connection that has waited longest for the rest of a request."""
        if self.pending_conns:
            self.drop(self.pending_conns[0])

    def murder_pending(self) -> None:
        """Close the connections that exceeded their timeouts."""
        now = time.monotonic()
        for conn in [conn for conn in self.pending_conns if conn.timeout <= now]:
            self.drop(conn)

    def _cap_keepalive(self, deadline: float) -> None:
        """Shorten the timeouts of incomplete requests when the process stops."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, time.monotonic() + STOP_KEEPALIVE_LINGER)
