"""One gunicorn worker with the site and its references, and a client that measures it."""

import http.client
import os
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from tests.benchmarks.rows import NAME, PASSWORD

WORKER = os.environ.get("WATCHER_BENCHMARK_WORKER", "sync")


@dataclass(frozen=True)
class Call:
    """A request that must succeed."""

    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"
    body: bytes | None = None


def with_token(token: str) -> dict[str, str]:
    return {"X-Auth-Token": token, "OpenStack-API-Version": "infra-optim 1.7"}


def with_password() -> dict[str, str]:
    credential = b64encode(f"{NAME}:{PASSWORD}".encode()).decode()
    return {"Authorization": f"Basic {credential}", "OpenStack-API-Version": "infra-optim 1.7"}


class Client:
    """One client of the server with this process id, which keeps its connection where the worker does."""

    def __init__(self, port: int, server: int = 0) -> None:
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def seconds(self, call: Call) -> float:
        """Return the duration of a request, up to the last byte of its response.

        Raises:
            RuntimeError: it did not succeed.
        """
        begin = time.perf_counter()
        self.connection.request(call.method, call.path, call.body, dict(call.headers))
        response = self.connection.getresponse()
        body = response.read()
        end = time.perf_counter()
        if response.status != HTTPStatus.OK:
            raise RuntimeError(f"{call.method} {call.path}: {response.status} {body[:500].decode()}")
        return end - begin


@contextmanager
def served(**variables: str) -> Iterator[Client]:
    """Serve the site and its references, with the given environment variables, during the context."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:watcher_site.gunicorn", "--workers", "1"]
    command += ["--worker-class", WORKER, "--threads", "1", "--bind", f"127.0.0.1:{port}"]
    environment = {**os.environ, **variables}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        wait_for(port)
        yield Client(port, process.pid)
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_for(port: int) -> None:
    """Raise TimeoutError unless the port accepts connections within half a minute."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"Nothing answers at port {port}.")
