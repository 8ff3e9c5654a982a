"""Python processes of tests, which `tests.fork_server` forks from a Python that has imported the libraries.

`start_fresh_command` starts a new Python, in at least one test of each command.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from tests.database import database_url

ROOT = Path(__file__).parent.parent


class ForkServer:
    """A process that forks on request, until this object is deleted or the tests have ended.

    It has imported the libraries, and with an environment it has loaded the site.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = self.start(theirs, environment)
        weakref.finalize(self, self.stop, self.orders, process)

    @staticmethod
    def start(orders: socket.socket, environment: Mapping[str, str] | None) -> "subprocess.Popen[bytes] | Process":
        if environment is not None:
            return Process("site", env=environment, stdin=orders.fileno(), stderr=2)
        command = [sys.executable, "-m", "tests.fork_server"]
        path = {"PATH": os.environ["PATH"]}
        return subprocess.Popen(command, cwd=ROOT, env=path, stdin=orders, stdout=subprocess.DEVNULL)

    @staticmethod
    def stop(orders: socket.socket, process: "subprocess.Popen[bytes] | Process") -> None:
        orders.close()
        process.wait()

    def fork(self, order: Mapping[str, Any], streams: list[int]) -> socket.socket:
        """Start a process, and return the connection that carries its id, then its exit status."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self.orders, [json.dumps(order).encode()], [theirs.fileno(), *streams])
        return ours


@cache
def library_server() -> ForkServer:
    return ForkServer()


@lru_cache(maxsize=6)
def site_server(environment: frozenset[tuple[str, str]]) -> ForkServer:
    return ForkServer(dict(environment))


class Process:
    """A process that runs ``python`` with these arguments, and has the methods of `subprocess.Popen`.

    Without other files, it has no input, and `communicate` returns its output. If ``loaded``, it is forked from a
    process that has loaded the site with the same environment, else from one that has imported the libraries.
    """

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str],
        cwd: Path = ROOT,
        stdin: int | None = None,
        stdout: int | None = None,
        stderr: int | None = None,
        start_new_session: bool = False,
        loaded: bool = False,
    ) -> None:
        self.args = arguments
        self.returncode: int | None = None
        self.output: list[IO[bytes]] = [TemporaryFile(), TemporaryFile()]  # noqa: SIM115 (read at the end)
        order = {
            "arguments": arguments,
            "environment": dict(env),
            "folder": str(cwd),
            "new_session": start_new_session,
        }
        with open(os.devnull) as nothing:
            given = (stdin, stdout, stderr)
            own = (nothing, *self.output)
            streams = [file.fileno() if number is None else number for number, file in zip(given, own, strict=True)]
            server = site_server(frozenset(env.items())) if loaded else library_server()
            self.connection = server.fork(order, streams)
        self.pid = self.receive("started")

    def receive(self, event: str) -> int:
        """Return the number that the fork server sends with an event."""
        message = self.connection.recv(100).decode()
        assert message.startswith(event), f"{event} was expected of {self.args}, not {message!r}"
        return int(message.removeprefix(event))

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.connection.settimeout(timeout)
            try:
                self.returncode = self.receive("ended")
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self.connection.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end of the process, and return the text of its output and of its error output."""
        self.wait(timeout)
        for file in self.output:
            file.seek(0)
        output, errors = (file.read().decode() for file in self.output)
        return output, errors

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def start_command(*arguments: str, **environment: str) -> Process:
    """Start a management command on the test database."""
    return Process("manage.py", *arguments, env=command_environment(environment), loaded=True)


def start_fresh_command(*arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """Start a management command on the test database, in a Python that has imported nothing."""
    command = [sys.executable, "manage.py", *arguments]
    files = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, env=command_environment(environment), text=True, **files)


def command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a management command: that of the tests, and the URL of the test database."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    return {**inherited, "DATABASE_URL": database_url(), **environment}
