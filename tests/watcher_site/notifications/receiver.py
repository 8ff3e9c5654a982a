"""A receiver of webhooks on loopback, which a test can make fail, hang and restart."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import create_server
from threading import Event, Lock, Thread
from typing import Any


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Log nothing: a killed client closes its connection."""


Answer = Callable[[dict[str, Any]], int | None]


class Receiver:
    """A receiver that stores the events it accepted; ``answer`` returns the status of a request, or None to hang."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.answer: Answer = lambda event: 204
        self.headers: dict[str, str] = {}
        self.lock, self.closing, self.reached = Lock(), Event(), Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/events"

    def start(self) -> None:
        self.server = Server(("127.0.0.1", self.port), handler_of(self))
        self.port = self.server.server_address[1]
        Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def take(self, headers: dict[str, str], body: bytes) -> int | None:
        event = json.loads(body)
        with self.lock:
            self.requests.append((headers, body))
            self.events.append(event)
            self.reached.set()
        status = self.answer(event)
        if status is not None and 200 <= status < 300:
            with self.lock:
                self.taken.append(event)
        return status

    def types(self) -> list[str]:
        return [event["type"] for event in self.taken]


def handler_of(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = receiver.take(dict(self.headers), body)
            if status is None:
                receiver.closing.wait(30)
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {**receiver.headers, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Log nothing."""

    return Handler


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.closing.set()
        receiver.stop()


@contextmanager
def dripping(beginning: bytes = b"") -> Iterator[str]:
    """Yield the URL of a receiver that sends a beginning, then one character at a time without an end."""
    listening = create_server(("127.0.0.1", 0))
    closing = Event()

    def drip() -> None:
        with suppress(OSError):
            connection, _ = listening.accept()
            with connection:
                connection.sendall(beginning)
                while not closing.wait(0.05):
                    connection.sendall(b"x")

    Thread(target=drip, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        closing.set()
        listening.close()
