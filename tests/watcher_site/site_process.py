"""A process of the site whose environment has only the variables that production must set."""

import os
import socket
import subprocess

from tests.processes import Process
from tests.waiting import PATIENCE

KEY = "Jm0kYv3cQx8sTn5bLr2wPz7hGd4fAe9uKi1oVq6yWj0tXe8nCb"
VALID_ENVIRONMENT = {"PATH": os.environ["PATH"], "SECRET_KEY": KEY, "DATABASE_URL": "sqlite://:memory:"}


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments and environment variables in a new process until it ends."""
    process = Process(*arguments, env={**VALID_ENVIRONMENT, **variables})
    try:
        output, errors = process.communicate(PATIENCE)
    finally:
        process.kill()
    return subprocess.CompletedProcess(arguments, process.wait(), output, errors)


def free_port_number() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
