"""The folder through which the workers of a web process share their metrics.

`prometheus_client` reads its variable when it is first imported: `create` must be called before that.
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

# The file names of `prometheus_client`: the type of the metrics, and the process id.
FILE_NAME = re.compile(r"(counter|histogram|summary|gauge_\w+)_\d+\.db")


class SharedFolder:
    """A folder in which each worker stores its counters in files named by process id."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.created: str | None = None

    def create(self) -> None:
        """Create the folder in the main process, or empty the one in the environment.

        The counters of a dead worker remain until the main process ends, because their sum must not decrease. Those of
        an earlier main process would be added to those of a worker with the same process id.
        """
        self.created = mkdtemp(prefix="watcher-site-metrics-")
        self.path = Path(os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", self.created))
        self.path.mkdir(parents=True, exist_ok=True)
        for file in self.path.iterdir():
            if FILE_NAME.fullmatch(file.name):
                file.unlink(missing_ok=True)

    def remove(self) -> None:
        if self.created:
            rmtree(self.created, ignore_errors=True)

    def living(self) -> list[int]:
        """Return the process ids of the running workers. To be called in a worker."""
        files = self.path.glob("counter_*.db") if self.path else ()
        pids = (int(file.stem.partition("_")[2]) for file in files)
        return sorted(pid for pid in pids if parent_of(pid) == os.getppid())


def parent_of(pid: int) -> int | None:
    """Return the process id of a process's parent, or None if the process has ended."""
    with suppress(OSError):
        # The name of the program, in parentheses, may contain any characters.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


shared_folder = SharedFolder()
