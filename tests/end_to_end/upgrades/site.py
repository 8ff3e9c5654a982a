"""The processes of one release, and a client of its API."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.end_to_end.upgrades.release import Release
from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.site_process import VALID_ENVIRONMENT, free_port_number

# A microversion of both releases, with the resources of the site.
MICROVERSION = "infra-optim 1.13"
WEB = ("-m", "gunicorn", "--config", "python:watcher_site.gunicorn")


def environment(database: str, **variables: str) -> dict[str, str]:
    """Return the environment of a process of either release."""
    return {
        **VALID_ENVIRONMENT,
        "DATABASE_URL": database,
        "ALLOWED_HOSTS": "127.0.0.1",
        "WATCHER_HTTPS": "false",
        **variables,
    }


class Client:
    """A client of the API with the token of an administrator."""

    def __init__(self, port: int, token: str) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.token = token
        self.headers = {"X-Auth-Token": token, "OpenStack-API-Version": MICROVERSION}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the body of the response; the status is 0 without a response."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        request = Request(f"{self.address}{path}", data, headers, method=method)  # noqa: S310
        try:
            with urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, read(answer.read())
        except HTTPError as problem:
            return problem.code, problem.read()
        except OSError as problem:
            return 0, problem

    def require(self, status: int, method: str, path: str, body: Any = None) -> Any:
        """Return the body of the response, and assert its status."""
        found, answer = self.call(method, path, body)
        assert found == status, (method, path, answer)
        return answer


def read(text: bytes) -> Any:
    return json.loads(text) if text[:1] in (b"{", b"[") else text


def change_of_state(state: str) -> list[dict[str, str]]:
    return [{"op": "replace", "path": "/state", "value": state}]


class Site:
    """Processes of one release on one database, with their logs in a folder."""

    def __init__(self, release: Release, variables: Mapping[str, str], folder: Path) -> None:
        self.release, self.environment, self.folder = release, dict(variables), folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.port = 0
        folder.mkdir(exist_ok=True)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a process until it ends."""
        return subprocess.run(
            [self.release.python, *arguments],
            cwd=self.release.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def succeed(self, *arguments: str) -> str:
        """Run a command, and return its output."""
        ended = self.run("manage.py", *arguments)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def start(self, name: str, *arguments: str) -> "subprocess.Popen[bytes]":
        with (self.folder / name).open("wb") as log:
            process = subprocess.Popen(
                [self.release.python, *arguments],
                cwd=self.release.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def start_web(self) -> "subprocess.Popen[bytes]":
        """Start a web process on a free port, and wait until it responds."""
        self.port = free_port_number()
        process = self.start("web", *WEB, "--bind", f"127.0.0.1:{self.port}", "--workers", "1")
        probe = Client(self.port, "")
        wait_for(lambda: process.poll() is not None or probe.call("GET", "/healthz")[0] == 200)
        assert process.poll() is None, self.log("web")
        return process

    def log(self, name: str) -> str:
        return (self.folder / name).read_text()

    def logs(self) -> str:
        return "".join(file.read_text() for file in sorted(self.folder.iterdir()))

    def stop(self) -> list[int]:
        """Stop all processes as a service manager does, and return their exit statuses."""
        for process in self.processes:
            process.terminate()
        statuses = [process.wait(PATIENCE) for process in self.processes]
        self.processes = []
        return statuses
