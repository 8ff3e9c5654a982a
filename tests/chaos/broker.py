"""A RabbitMQ server of the storm's own, to be killed and started again, and a postman who delivers letters twice."""

import glob
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from threading import Thread
from types import TracebackType
from typing import Any
from uuid import uuid4

from kombu import Connection
from kombu.exceptions import OperationalError

# The script that a package's own wraps, which would insist on a user of its own.
SERVER = "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"
PATIENCE = 180


def is_installed() -> bool:
    return bool(glob.glob(SERVER))


class OwnBroker:
    """Keeps its files in a folder, and its ports and name to itself."""

    def __init__(self, folder: Path) -> None:
        self.port, distribution, names = free_ports(3)
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self.killed = 0
        self.log = folder / "rabbitmq"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "RABBITMQ_NODENAME": f"storm-{uuid4()}@localhost",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_MNESIA_BASE": str(folder / "tables"),
            "RABBITMQ_LOG_BASE": str(folder / "logs"),
            "RABBITMQ_CONFIG_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        }

    @property
    def environment_of_the_site(self) -> dict[str, str]:
        """Return the variables by which processes of the site use this broker, and resend lost messages soon."""
        return {"WATCHER_EXECUTOR": "celery", "CELERY_BROKER_URL": self.url, "WATCHER_CELERY_RESEND": "3"}

    def __enter__(self) -> "OwnBroker":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: object, trace: TracebackType | None) -> None:
        self.stop()
        # The name server that it started stays behind, in a session of its own.
        with suppress(OSError):
            subprocess.run(["epmd", "-kill"], env=self.environment, check=False, capture_output=True)

    def start(self) -> None:
        """Start it, and return when it takes connections."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                glob.glob(SERVER)[:1], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + PATIENCE
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError(f"RabbitMQ does not start: {self.log.read_text()}")
            time.sleep(0.2)

    def answers(self) -> bool:
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
        """Kill the broker and start it again: messages that it did not store on its disk are lost."""
        self.killed += 1
        self.stop()
        self.start()


class Postman:
    """Takes messages out of a queue at intervals, and puts each back twice."""

    def __init__(self, broker: OwnBroker, queue: str, chance: Random) -> None:
        self.broker, self.queue, self.chance = broker, queue, chance
        self.doubled = 0

    def go(self) -> None:
        try:
            with Connection(self.broker.url, connect_timeout=2) as connection:
                self.double(connection.channel())
        except (*connection.connection_errors, *connection.channel_errors, OperationalError):
            # Nobody has made the queue yet, or the broker was just killed.
            return

    def double(self, channel: Any) -> None:
        while self.chance.random() < 0.8 and (message := channel.basic_get(self.queue)):
            for _ in range(2):
                channel.basic_publish(message, exchange="", routing_key=self.queue)
            channel.basic_ack(message.delivery_tag)
            self.doubled += 1


class BadPost:
    """Everything that happens to letters: they come twice, out of order, and not at all."""

    def __init__(self, broker: OwnBroker, queue: str, seed: int, every: float = 20) -> None:
        self.chance = Random(seed)  # noqa: S311 (chance, no secret)
        self.broker, self.every = broker, every
        self.postman = Postman(broker, queue, self.chance)
        self.next_kill = time.monotonic() + every / 3
        self.killing: Thread | None = None

    def trouble(self) -> None:
        """Called again and again as long as the storm lasts."""
        if self.killing and self.killing.is_alive():
            return
        if time.monotonic() > self.next_kill:
            # It takes some seconds to start, in which the storm goes on.
            self.killing = Thread(target=self.kill)
            self.killing.start()
        elif self.chance.random() < 0.1:
            self.postman.go()

    def kill(self) -> None:
        self.broker.kill()
        self.next_kill = time.monotonic() + self.chance.uniform(0.5, 1.5) * self.every

    def end(self) -> None:
        if self.killing:
            self.killing.join()


def free_ports(number: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports
