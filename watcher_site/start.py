"""Start the processes of the Procfile together, and stop them together: ``python -m watcher_site.start``.

honcho does it, in a session of its own, where it is signalled once and by us alone: it loses its processes when it is
signalled before it knows them all, and does not stop with its terminal.
"""

import signal
import subprocess
import sys
import time
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SETTLING_SECONDS = 1.0
LOOK_SECONDS = 0.1
# No file of variables: `prepare` and every command would have to read it too.
HONCHO = [sys.executable, "-m", "watcher_site.procfile", "start", "--env", "/dev/null"]


def start() -> int:
    """Run until a signal or the end of any of the processes; return 0 after a signal, else how that one ended."""
    received: list[int] = []

    def request_stop(number: int, *_: Any) -> None:
        received.append(number)

    for number in SIGNALS:
        signal.signal(number, request_stop)
    honcho = subprocess.Popen(HONCHO, start_new_session=True)  # noqa: S603
    time.sleep(SETTLING_SECONDS)
    while honcho.poll() is None and not received:
        time.sleep(LOOK_SECONDS)
    honcho.terminate()
    status = honcho.wait()
    return 0 if received else status


if __name__ == "__main__":
    sys.exit(start())
