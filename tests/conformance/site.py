"""A site as ``make run`` starts it: all processes of the Procfile, an empty SQLite database, an empty cloud."""

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.conformance.identity import Account
from tests.processes import ROOT
from tests.watcher_site.site_process import free_port_number

NAME = "conformance"
# In seconds; a start takes some seconds on an idle machine, and a stop lets running actions finish.
START_SECONDS, STOP_SECONDS = 300, 120
# Variables that the caller's environment must not change: the site runs with the defaults.
OWN = ("ALLOWED_HOSTS", "DATABASE_URL", "DEBUG", "DJANGO_SETTINGS_MODULE", "OS_", "SECRET_KEY", "WATCHER_")


class NotStarted(Exception):
    """The site does not respond; the message contains the end of its output."""


def environment(folder: Path, port: int, password: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    return {
        **kept,
        "DATABASE_URL": f"sqlite:///{folder / 'watcher.sqlite3'}",
        "PORT": str(port),
        "SECRET_KEY": secrets.token_urlsafe(64),
        "WATCHER_ADMIN_PASSWORD": password,
        "WATCHER_DEMO": "false",
        "WATCHER_HTTPS": "false",
        "WATCHER_USER_PASSWORD": password,
    }


@contextmanager
def started(folder: Path) -> Iterator[tuple[str, Account]]:
    """Start a site, and yield its URL and the account of an administrator.

    Raises:
        NotStarted: it does not respond in time.
    """
    port, password, log = free_port_number(), secrets.token_urlsafe(16), folder / "site.log"
    variables = environment(folder, port, password)
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "watcher_site.processes.start"]
    with log.open("wb") as printed:
        site = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=printed, stderr=subprocess.STDOUT)
        try:
            wait_until_ready(url, site, log)
            manage(variables, "create_user", NAME, "--group", "cloud-admin")
            yield url, Account(NAME, password, manage(variables, "create_token", NAME))
        finally:
            stop(site)


def stop(site: "subprocess.Popen[bytes]") -> None:
    site.terminate()
    try:
        site.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        site.kill()
        site.wait()


def wait_until_ready(url: str, site: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not answers(f"{url}/readyz"):
        if site.poll() is not None or time.monotonic() > end:
            raise NotStarted(f"The site does not answer. It printed:\n{log.read_text()[-4000:]}")
        time.sleep(0.2)


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=10):  # noqa: S310 (http, on loopback)
            return True
    except (URLError, OSError):
        return False


def manage(variables: Mapping[str, str], *arguments: str) -> str:
    """Run a management command of the site, and return its output."""
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=variables, check=True, capture_output=True, text=True)
    return done.stdout.strip()
