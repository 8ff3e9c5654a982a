"""The start of the site: preparation, and the processes of the Procfile.

Command: ``python -m watcher_site.processes.start``.

The processes are in a separate session, in which only this process signals them, once. A terminal would signal each of
them on Ctrl-C, and none when it is closed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.files import locks

from watcher_site.processes.command_line import BAD_INPUT
from watcher_site.refusals import Conflict

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
POLL_SECONDS = 0.1
PREPARE = [sys.executable, "-m", "watcher_site.processes.command_line", "prepare"]
SERVE = [sys.executable, "-m", "watcher_site.processes.procfile", str(os.getpid())]


class Start:
    """One run of the site, until a signal or the end of a process that is not restarted."""

    def __init__(self) -> None:
        self.received: list[int] = []
        for number in SIGNALS:
            signal.signal(number, self.request_stop)

    def request_stop(self, number: int, *_: Any) -> None:
        self.received.append(number)

    def run(self, *commands: list[str]) -> int:
        """Run the commands in order, and return 0 after a signal, or else the exit status of the last one."""
        status = 0
        for command in commands:
            status = status or self.run_command(command)
        return 0 if self.received else status

    def run_command(self, command: list[str]) -> int:
        if self.received:
            return 0
        process = subprocess.Popen(command, start_new_session=True)  # noqa: S603
        while process.poll() is None and not self.received:
            time.sleep(POLL_SECONDS)
        process.terminate()
        return process.wait()


@contextmanager
def require_single_start() -> Iterator[None]:
    """Prevent another start from this folder with the same port, which is not yet in use during preparation.

    Raises:
        Conflict: another start is in progress, or serves the port.
    """
    # Imported here, so that an invalid variable is reported in one line.
    from watcher_site import settings

    settings.DATA_DIR.mkdir(mode=0o700, exist_ok=True)
    with (settings.DATA_DIR / f"port-{settings.PORT}.lock").open("a") as file:
        if not locks.lock(file, locks.LOCK_EX | locks.LOCK_NB):
            raise Conflict(
                f"PORT: another start in this folder serves {settings.BIND}:{settings.PORT}, or is starting."
            )
        yield


def main() -> int:
    try:
        with require_single_start():
            return Start().run(PREPARE, SERVE)
    except (ImproperlyConfigured, Conflict) as problem:
        sys.stderr.write(f"{problem}\n")
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
