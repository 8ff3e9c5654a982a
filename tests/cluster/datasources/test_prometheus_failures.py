"""Readings from a Prometheus server that fails, refuses, hangs, or is another program."""

import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest
from pytest_django import Settings

from cluster.datasources.base import DatasourceError, Reading
from cluster.datasources.prometheus import Prometheus

READING = Reading("host_power", 300)
ANSWER = {"status": "success", "data": {"resultType": "vector", "result": []}}
SAMPLE = {"metric": {"fqdn": "compute1"}, "value": [0, "100"]}


class Server(ThreadingHTTPServer):
    """Sends the responses in order and repeats the last: a status, and a body, None (hang) or "drops" (slow)."""

    answers: list[tuple[int, Any]]

    def __init__(self) -> None:
        self.requests = 0
        self.ended = Event()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        status, body = self.server.answers[min(self.server.requests, len(self.server.answers) - 1)]
        self.server.requests += 1
        if body is None:
            self.server.ended.wait(30)
            return
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/login")
        self.end_headers()
        if body == "drops":
            self.drip()
        else:
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def drip(self) -> None:
        try:
            while not self.server.ended.wait(0.05):
                self.wfile.write(b" ")
        except OSError:
            pass  # the client closed the connection

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def server(settings: Settings) -> Iterator[Server]:
    with Server() as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        settings.PROMETHEUS_URL = f"http://watcher:secret@127.0.0.1:{server.server_port}"
        settings.DATASOURCE_ATTEMPTS, settings.DATASOURCE_WAIT, settings.DATASOURCE_TIMEOUT = 3, 0, 0.3
        yield server
        server.ended.set()
        server.shutdown()


def refusal(server: Server, *answers: tuple[int, Any]) -> str:
    """Return the error message of a reading that fails, without the name of the source."""
    server.answers = list(answers)
    with pytest.raises(DatasourceError) as problem:
        Prometheus().read(READING)
    begin = "The data source prometheus "
    assert str(problem.value).startswith(begin)
    return str(problem.value).removeprefix(begin)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_query_is_retried_after_a_server_error(server: Server, status: int) -> None:
    server.answers = [(status, {}), (status, {}), (200, {**ANSWER, "data": {"result": [SAMPLE]}})]
    assert Prometheus().read(READING) == {"compute1": 100}


def test_permanent_server_error_is_reported(server: Server) -> None:
    assert refusal(server, (503, {})) == "is not available: status 503"
    assert server.requests == 3


@pytest.mark.parametrize("status", [400, 401, 403, 422])
def test_refused_query_is_not_retried(server: Server, status: int) -> None:
    assert refusal(server, (status, b"<html>")) == f"refused the query with status {status}."
    assert server.requests == 1


def test_reason_of_a_refusal_is_reported(server: Server) -> None:
    body = {"status": "error", "errorType": "execution", "error": "too many samples"}
    assert refusal(server, (422, body)) == "refused the query with status 422: too many samples"


def test_redirect_is_not_followed(server: Server) -> None:
    assert refusal(server, (302, b"")) == "refused the query with status 302."
    assert server.requests == 1


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Welcome</html>",
        [],
        {},
        {"status": "success", "data": None},
        {"status": "success", "data": {"result": [{"metric": {}}]}},
        {"status": "success", "data": {"result": [{"metric": None, "value": [0, "1"]}]}},
        {"status": "success", "data": {"result": [{"metric": {}, "value": [0, "much"]}]}},
        {"status": "success", "data": {"resultType": "scalar", "result": [0, "1"]}},
    ],
)
def test_unexpected_response_body_is_reported(server: Server, body: Any) -> None:
    assert refusal(server, (200, body)) == "answered with status 200, and not as Prometheus does."


def test_values_other_than_finite_numbers_are_omitted(server: Server) -> None:
    samples = [{**SAMPLE, "value": [0, value]} for value in ("NaN", "+Inf")]
    server.answers = [(200, {**ANSWER, "data": {"result": samples}})]
    assert Prometheus().read(READING) == {}


def test_hanging_server_times_out(server: Server, settings: Settings) -> None:
    settings.DATASOURCE_ATTEMPTS = 2
    assert refusal(server, (200, None)) == "is not available: ReadTimeout"
    assert server.requests == 2


def test_slow_response_times_out(server: Server, settings: Settings) -> None:
    settings.DATASOURCE_ATTEMPTS = 1
    begin = time.monotonic()
    assert refusal(server, (200, "drops")) == "is not available: no whole answer within 0.3 seconds"
    assert time.monotonic() - begin >= 0.3


def test_unreachable_server_is_reported(settings: Settings) -> None:
    settings.PROMETHEUS_URL = "http://127.0.0.1:9"
    settings.DATASOURCE_ATTEMPTS, settings.DATASOURCE_WAIT = 2, 0
    with pytest.raises(DatasourceError, match=r"prometheus is not available: ConnectionError"):
        Prometheus().read(READING)


def test_response_over_the_size_limit_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster.datasources.http.MAX_BYTES", 1000)
    server.answers = [(200, b" " * 100_000)]
    with pytest.raises(DatasourceError, match="is larger than 1000 bytes"):
        Prometheus().read(READING)
