"""Processes of the site that are killed or stopped at random."""

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from threading import Timer
from types import TracebackType

from django.conf import settings

from tests.processes import Process

# Short intervals, so that processes are lost and replaced many times a minute.
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
# Longer than WATCHER_SERVICE_DOWN_TIME: a process that was stopped for this time has lost its lease.
STOP_SECONDS = 2.5


class ProcessGroup:
    """One process for each command. A process that is killed is started again at once."""

    def __init__(self, commands: Sequence[Sequence[str]], log: Path, environment: Mapping[str, str]) -> None:
        self.commands = commands
        types = ",".join([*settings.ACTION_TYPES, "tests.chaos.deriving_action.MoveServers"])
        self.environment = {**os.environ, **ENVIRONMENT, "WATCHER_ACTION_TYPES": types, **environment}
        self.log = log.open("a")
        self.killed = self.stopped = 0
        self.continue_timers: dict[int, Timer] = {}

    def __enter__(self) -> "ProcessGroup":
        self.processes = [self.start(command) for command in self.commands]
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: object, trace: TracebackType | None) -> None:
        for timer in self.continue_timers.values():
            timer.cancel()
        for process in self.processes:
            # The whole session: the children of a worker must not outlive it.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.log.close()

    def start(self, command: Sequence[str]) -> Process:
        log = self.log.fileno()
        return Process(*command, env=self.environment, stdout=log, stderr=log, start_new_session=True, loaded=True)

    def kill_or_stop_one(self, random: Random) -> None:
        """Kill a random process, or stop it for `STOP_SECONDS`."""
        index = random.randrange(len(self.processes))
        if index in self.continue_timers:
            return
        if random.random() < 0.25:
            self.stopped += 1
            self.stop_temporarily(index)
            return
        self.killed += 1
        self.restart(index)

    def stop_temporarily(self, index: int) -> None:
        """Stop a process for `STOP_SECONDS`.

        A thread continues the process, because the caller may meanwhile wait for locks that the process holds.
        """
        pid = self.processes[index].pid
        self.continue_timers[index] = Timer(STOP_SECONDS, os.killpg, (pid, signal.SIGCONT))
        os.killpg(pid, signal.SIGSTOP)
        self.continue_timers[index].start()

    def restart(self, index: int) -> None:
        """Kill a process, and start it again."""
        os.killpg(self.processes[index].pid, signal.SIGKILL)
        self.processes[index].wait()
        self.processes[index] = self.start(self.commands[index])

    def check(self) -> None:
        """Remove the timers that are over, and check that no process exited by itself."""
        self.continue_timers = {index: timer for index, timer in self.continue_timers.items() if timer.is_alive()}
        for index, process in enumerate(self.processes):
            if process.poll() is not None:
                command = " ".join(self.commands[index])
                raise RuntimeError(f"{command} exited by itself with status {process.returncode}")
