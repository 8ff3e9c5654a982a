"""A process of the site's own, with an environment that holds nothing but what production must set."""

import json
import os
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent.parent
KEY = "Jm0kYv3cQx8sTn5bLr2wPz7hGd4fAe9uKi1oVq6yWj0tXe8nCb"
SOUND = {"PATH": os.environ["PATH"], "SECRET_KEY": KEY, "DATABASE_URL": "sqlite://:memory:"}


@cache
def warm_python() -> "subprocess.Popen[str]":
    """Start the one that the processes of `run` come from. It ends when its input does: with the suite."""
    command = [sys.executable, "-m", "tests.watcher_site.warm_python"]
    return subprocess.Popen(command, cwd=ROOT, env=SOUND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and environment variables until it ends, in a process of its own."""
    python = warm_python()
    with TemporaryDirectory() as folder:
        printed = [Path(folder, name) for name in ("stdout", "stderr")]
        for path in printed:
            path.touch()
        files = [os.devnull, *map(str, printed)]
        order = {"arguments": arguments, "environment": {**SOUND, **variables}, "files": files}
        python.stdin.write(json.dumps(order) + "\n")
        python.stdin.flush()
        status = int(python.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, *(path.read_text() for path in printed))


def free_port_number() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
