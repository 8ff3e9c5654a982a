"""A site with an unavailable database: a real web process, and a port without a listener."""

import http.client
from collections.abc import Iterator
from socket import create_server

import pytest

from tests.end_to_end.processes.test_slow_clients import serving
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow
TOKEN = {"X-Auth-Token": "f" * 64}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(DATABASE_URL="postgres://watcher:secret@127.0.0.1:1/watcher") as (_, number):
        yield number


def ask(port: int, method: str, path: str, timeout: float = PATIENCE, **headers: str) -> tuple[int, str | None, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.headers["Retry-After"], answer.read().decode()


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/v1/action_plans", TOKEN),
        ("DELETE", "/v1/audits/1", TOKEN),
        ("GET", "/compute/v2.1/servers", TOKEN),
        ("GET", "/orchestration/v1/p1/stacks", TOKEN),
        ("GET", "/metrics", {"Authorization": f"Bearer {'f' * 64}"}),
        ("GET", "/console/plans/", {"Cookie": "sessionid=abcdefghijklmnopqrstuvwxyz012345"}),
        ("GET", "/readyz", {}),
        ("GET", "/readyz", TOKEN),
    ],
)
def test_request_without_a_database_is_503_with_retry_after(
    port: int, method: str, path: str, headers: dict[str, str]
) -> None:
    status, retry_after, body = ask(port, method, path, **headers)
    assert (status, retry_after) == (503, "5")
    assert not any(word in body for word in ("127.0.0.1", "watcher:secret", "Traceback"))


def test_database_that_accepts_connections_without_a_response_is_503() -> None:
    with create_server(("127.0.0.1", 0)) as silent:
        url = f"postgres://watcher:secret@127.0.0.1:{silent.getsockname()[1]}/watcher"
        with serving(DATABASE_URL=url) as (_, port):
            # Less than the two minutes that a connection may take without a limit of the site.
            status, retry_after, _ = ask(port, "GET", "/readyz", timeout=60)
    assert (status, retry_after) == (503, "5")


def test_healthz_succeeds_without_a_database(port: int) -> None:
    assert ask(port, "GET", "/healthz")[0] == 200
