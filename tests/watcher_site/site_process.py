"""A process of the site's own, with an environment that holds nothing but what production must set."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent.parent
KEY = "Jm0kYv3cQx8sTn5bLr2wPz7hGd4fAe9uKi1oVq6yWj0tXe8nCb"
SOUND = {"PATH": os.environ["PATH"], "SECRET_KEY": KEY, "DATABASE_URL": "sqlite://:memory:"}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and environment variables until it ends."""
    environment = {**SOUND, **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def free_port_number() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
