"""Processes that work on the plans, and are killed or put to sleep at random."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from threading import Timer
from types import TracebackType

from django.conf import settings

from tests.processes import Process

# Short, so that many lives fit into a minute.
ENVIRONMENT = {
    "WATCHER_SERVICE_DOWN_TIME": "1.5",
    "WATCHER_POLL_INTERVAL": "0.2",
    "WATCHER_EMBEDDED_CLOUD_SECONDS": "0.05",
    "WATCHER_ACTION_RETRY_INTERVAL": "0.1",
    "WATCHER_ACTION_RETRIES": "10",
    "WATCHER_ACTION_TIMEOUT_GRACE": "0.3",
    "WATCHER_LOG_FORMAT": "json",
    "WATCHER_LOG_LEVEL": "WARNING",
}
# A process that sleeps as long as that has lost its lease when it wakes up.
SLEEP = 2.5


class Fleet:
    """As many processes as there are commands. Each that is killed is started again at once."""

    def __init__(self, commands: Sequence[Sequence[str]], log: Path, environment: Mapping[str, str]) -> None:
        self.commands = commands
        types = ",".join([*settings.ACTION_TYPES, "tests.chaos.moves.MoveServers"])
        self.environment = {**os.environ, **ENVIRONMENT, "WATCHER_ACTION_TYPES": types, **environment}
        self.log = log.open("a")
        self.killed = self.put_to_sleep = 0
        self.asleep: dict[int, Timer] = {}

    def __enter__(self) -> "Fleet":
        self.processes = [self.start(command) for command in self.commands]
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: object, trace: TracebackType | None) -> None:
        for timer in self.asleep.values():
            timer.cancel()
        for process in self.processes:
            # Whole sessions: a worker's own children must not outlive it.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.log.close()

    def start(self, command: Sequence[str]) -> Process:
        log = self.log.fileno()
        return Process(*command, env=self.environment, stdout=log, stderr=log, start_new_session=True, loaded=True)

    def strike(self, chance: Random) -> None:
        """Kill one of them, or put it to sleep."""
        place = chance.randrange(len(self.processes))
        if place in self.asleep:
            return
        if chance.random() < 0.25:
            self.put_to_sleep += 1
            self.stop_for_a_while(place)
            return
        self.killed += 1
        self.restart(place)

    def stop_for_a_while(self, place: int) -> None:
        """Stop one of them for `SLEEP` seconds.

        A thread continues it: the one that calls this may wait meanwhile for locks that the stopped process holds.
        """
        pid = self.processes[place].pid
        self.asleep[place] = Timer(SLEEP, os.killpg, (pid, signal.SIGCONT))
        os.killpg(pid, signal.SIGSTOP)
        self.asleep[place].start()

    def restart(self, place: int) -> None:
        """Kill one of them, and start it again."""
        os.killpg(self.processes[place].pid, signal.SIGKILL)
        self.processes[place].wait()
        self.processes[place] = self.start(self.commands[place])

    def check(self) -> None:
        """Forget the stops that are over, and check that no process has left by itself."""
        self.asleep = {place: timer for place, timer in self.asleep.items() if timer.is_alive()}
        for place, process in enumerate(self.processes):
            if process.poll() is not None:
                raise RuntimeError(f"{' '.join(self.commands[place])} left by itself with status {process.returncode}")
