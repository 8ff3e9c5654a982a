"""Start the processes of the Procfile together, and stop them together: ``python -m watcher_site.start``.

It is honcho, which a closed terminal stops as well: its processes are in sessions of their own and would stay.
"""

import signal
import sys
from typing import Any

from honcho.command import main

# What honcho exits with after SIGINT and SIGTERM: it was asked to.
STOPPED = {130, 143}


def stop(*_: Any) -> None:
    signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGHUP, stop)
    # No file of variables: `prepare` and every command would have to read it too.
    sys.argv = ["honcho", "start", "--env", "/dev/null"]
    try:
        main()
    except SystemExit as ended:
        sys.exit(0 if ended.code in STOPPED else ended.code)
