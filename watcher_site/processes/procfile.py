"""Run the processes of the Procfile, and a worker or listener if needed, until a signal.

Command: ``python -m watcher_site.processes.procfile [PARENT]``. PARENT is the id of its parent process, if the site
stops when that process ends.

honcho starts the processes and prints their output. In addition, a process that crashes, is killed or ends
unexpectedly is restarted, and all have the time that actions need when the site stops.

No process manager can be configured to do this. honcho 2.0 stops all processes as soon as one ends, and kills them
after five seconds. supervisor 4.3 and circus 0.19 restart processes, but continue without one that refuses to start
(exit status 2) or cannot be started. With all three, processes outlive a manager that is killed, and would keep the
port and execute actions together with those of the next start. This module therefore extends classes of honcho,
including private methods; `.ci/requirements` pins its version.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

from honcho import manager
from honcho.environ import parse_procfile
from honcho.printer import Printer
from honcho.process import Popen, Process

from watcher_site import settings
from watcher_site.processes.command_line import BAD_INPUT

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
# The limit of restarts of a process that is killed again and again.
MOST_RESTARTS = 5
# Without the web process no request is served: if it cannot start, the site stops.
WEB = "web"
WORKER = "exec python -m watcher_site.processes.command_line run_worker"
LISTENER = "exec python -m watcher_site.processes.command_line listen_notifications"
# A process that ran for this number of seconds can restart without counting earlier restarts.
PROVEN = 60.0


def pause_before(restart: int) -> float:
    """Return the seconds to wait before a restart; the first restart has the number 0."""
    return min(FIRST_PAUSE * 2 ** min(restart, 10), LONGEST_PAUSE)


class RestartedProcess(Process):
    """A line of the Procfile, which is restarted after a crash. Only honcho's manager stops its process."""

    def __init__(self, *args: Any, stopping: tuple[Connection, Connection], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stopping, self.manager_end = stopping
        self._child_ctor = self.start_child
        self.returncode = 0

    def run(self, events: Any = None, ignore_signals: bool = False) -> None:
        # Only the manager keeps the other end open, which is closed even if the manager is killed.
        self.manager_end.close()
        restarts = 0
        while True:
            began = time.monotonic()
            super().run(events, ignore_signals)
            if time.monotonic() - began > PROVEN:
                restarts = 0
            if self.stopping.poll() or self.ends_site(restarts):
                break
            pause = pause_before(restarts)
            self.print_line(f"{self.name} {self.end}, and is restarted in {pause:g} s\n")
            if self.stopping.poll(pause):
                break
            restarts += 1
        super()._send_message({"returncode": self.returncode}, type="stop")

    def ends_site(self, restarts: int) -> bool:
        """Return whether the end of the process ends the site. After a crash, the other processes continue."""
        if self.returncode > 0:
            return self.returncode == BAD_INPUT or self.name == WEB
        return restarts >= MOST_RESTARTS

    @property
    def end(self) -> str:
        if self.returncode > 0:
            return f"crashed with exit status {self.returncode}"
        return f"was killed by {signal.Signals(-self.returncode).name}" if self.returncode else "ended unexpectedly"

    def print_line(self, line: str) -> None:
        super()._send_message(line.encode())

    def _send_message(self, data: Any, type: str = "line") -> None:
        """Do not report the end of a process to the manager, because it would stop the others."""
        if type == "stop":
            self.returncode = data["returncode"]
        else:
            super()._send_message(data, type)

    def start_child(self, *args: Any, **kwargs: Any) -> Popen:
        for number in (signal.SIGINT, signal.SIGTERM):
            # honcho ignores these signals after the first start, and child processes inherit that.
            signal.signal(number, signal.SIG_DFL)
        child = Popen(*args, **kwargs)
        Thread(target=self.stop_child, args=(child,), daemon=True).start()
        return child

    def stop_child(self, child: Popen) -> None:
        """Stop this process when the site stops, even if it has only just started."""
        self.stopping.poll(None)
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)


class LinePrinter(Printer):
    """honcho's printer, which stops the site when its output is closed, as with ``make run | head``."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__(sys.stdout)
        self.stop = stop

    def write(self, message: Any) -> None:
        try:
            super().write(message)
        except BrokenPipeError:
            # The output of the processes is read until they have ended, and discarded.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.output.fileno())
            self.stop()


class PatientManager(manager.Manager):
    """honcho's manager, which also stops processes that are about to start, and is stopped through a pipe.

    Args:
        parent: the id of the process with which it ends, also if that is killed.
    """

    def __init__(self, parent: int | None = None) -> None:
        super().__init__(LinePrinter(self.terminate))
        self.parent = parent
        self._terminating = False
        receiver, self.sender = Pipe(duplex=False)
        self._process_ctor = partial(RestartedProcess, stopping=(receiver, self.sender))

    def terminate(self) -> None:
        """Stop the site. Signal handlers may call this, because writing to a pipe takes no lock."""
        if not self._terminating:
            self._terminating = True
            self.sender.send_bytes(b"stop")

    def _all_stopped(self) -> bool:
        self.mark_lost_processes()
        return super()._all_stopped()

    def _any_stopped(self) -> bool:
        """Return whether the processes are stopping. From then on they have `settings.STOP_GRACE` seconds."""
        return self._terminating or self.parent not in {None, os.getppid()} or super()._any_stopped()

    def mark_lost_processes(self) -> None:
        """Mark processes as ended whose supervising process, which would report this, has ended."""
        for process in self._processes.values():
            if "returncode" not in process and process["process"].exitcode not in {None, 0}:
                process["returncode"] = self.returncode = process["process"].exitcode
                self._procmgr.terminate(process["pid"])


def commands() -> dict[str, str]:
    """Return the commands of the processes in the Procfile, and of those that the settings require.

    These are a worker if appliers send actions to workers, and a listener if the broker of the cloud is set. They are
    not in the Procfile, because they refuse to start without these settings, which would end the site.
    """
    file = next(path for path in (Path("Procfile"), Path(settings.__file__).with_name("Procfile")) if path.exists())
    found: dict[str, str] = dict(parse_procfile(file.read_text()).processes)
    if settings.EXECUTOR == "celery":
        found.setdefault("worker", WORKER)
    if settings.CLOUD_NOTIFICATION_URL:
        found.setdefault("listener", LISTENER)
    return found


def run(parent: int | None = None) -> int:
    manager.KILL_WAIT = settings.STOP_GRACE
    site = PatientManager(parent)
    for name, command in commands().items():
        process = site.add_process(name, command)
        # The Python of this environment, independent of the caller's PATH.
        process.env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{process.env.get('PATH', os.defpath)}"
    site.loop()
    return int(site.returncode)


if __name__ == "__main__":
    sys.exit(run(*map(int, sys.argv[1:])))
