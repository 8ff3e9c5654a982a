"""A RabbitMQ server of a test's own, which can be killed and started again."""

import glob
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from uuid import uuid4

from kombu import Connection

# The script that a package's own wraps, which would insist on a user of its own.
SERVER = "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"
START_TIMEOUT_SECONDS = 180


def is_installed() -> bool:
    return bool(glob.glob(SERVER))


class OwnBroker:
    """A RabbitMQ server with its own folder, ports and node name."""

    def __init__(self, folder: Path) -> None:
        self.port, distribution, names = free_ports(3)
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self.killed = 0
        self.log = folder / "rabbitmq"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"chaos-{uuid4()}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_MNESIA_BASE": str(folder / "tables"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }

    @property
    def site_environment(self) -> dict[str, str]:
        """Return the variables with which processes of the site use this broker, and resend lost messages soon."""
        return {"WATCHER_EXECUTOR": "celery", "CELERY_BROKER_URL": self.url, "WATCHER_CELERY_RESEND": "3"}

    def __enter__(self) -> "OwnBroker":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: object, trace: TracebackType | None) -> None:
        self.stop()
        # The broker starts its name server in a separate session.
        with suppress(OSError):
            subprocess.run(["epmd", "-kill"], env=self.environment, check=False, capture_output=True)

    def start(self) -> None:
        """Start the server, and return when it accepts connections."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                glob.glob(SERVER)[:1], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not self.accepts_connections():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"RabbitMQ does not start: {self.log.read_text()}")
            time.sleep(0.2)

    def accepts_connections(self) -> bool:
        try:
            with Connection(self.url, connect_timeout=2) as connection:
                connection.transport.close_connection(connection.transport.establish_connection())
        except (*connection.connection_errors, *connection.channel_errors):
            return False
        return True

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill(self) -> None:
        """Kill the broker and start it again. Messages that are not stored on disk are lost."""
        self.killed += 1
        self.stop()
        self.start()


def free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports
