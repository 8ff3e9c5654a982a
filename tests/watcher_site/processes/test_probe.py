"""The health check of containers."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from tests.watcher_site.site_process import free_port_number, run

PROBE = ("-m", "watcher_site.processes.probe")


class Site(BaseHTTPRequestHandler):
    """Respond as a site whose only host name is watcher.example.org."""

    def do_GET(self) -> None:
        is_right = (self.path, self.headers["Host"]) == ("/healthz", "watcher.example.org")
        self.send_response(200 if is_right else 400)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def port() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Site) as server:
        Thread(target=server.serve_forever).start()
        yield str(server.server_port)
        server.shutdown()


@pytest.mark.parametrize("bind", ["127.0.0.1", "0.0.0.0"])  # noqa: S104
def test_site_that_responds_to_its_host_name_is_healthy(port: str, bind: str) -> None:
    ended = run(*PROBE, ALLOWED_HOSTS="watcher.example.org", WATCHER_BIND=bind, PORT=port)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_site_with_a_wildcard_host_is_probed_with_the_domain(port: str) -> None:
    assert run(*PROBE, ALLOWED_HOSTS=".watcher.example.org", PORT=port).returncode == 0


def test_response_other_than_200_is_unhealthy(port: str) -> None:
    ended = run(*PROBE, ALLOWED_HOSTS="other.example.org", PORT=port)
    assert (ended.returncode, ended.stderr) == (1, f"127.0.0.1:{port} answers 400 Bad Request\n")


def test_site_that_does_not_listen_is_unhealthy() -> None:
    ended = run(*PROBE, PORT=str(free_port_number()))
    assert ended.returncode == 1
    assert re.fullmatch(r"127\.0\.0\.1:\d+ does not answer: .*\n", ended.stderr)


def test_other_process_is_probed_on_its_port_for_metrics(port: str) -> None:
    ended = run(*PROBE, "applier", ALLOWED_HOSTS="watcher.example.org", WATCHER_METRICS_PORTS=f"applier={port}")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_process_without_a_port_for_metrics_is_not_probed() -> None:
    ended = run(*PROBE, "relay", WATCHER_METRICS_PORTS="applier=9101")
    assert (ended.returncode, ended.stderr) == (2, "WATCHER_METRICS_PORTS: names no port for relay.\n")


def test_unknown_type_of_process_is_one_line_with_status_2() -> None:
    ended = run(*PROBE, "aplier")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("argument PROCESS: invalid choice: 'aplier' (choose from ")


def test_further_argument_is_one_line_with_status_2(port: str) -> None:
    ended = run(*PROBE, "web", "relay", ALLOWED_HOSTS="watcher.example.org", PORT=port)
    assert (ended.returncode, ended.stderr) == (2, "unrecognized arguments: relay\n")


def test_help_lists_the_types_of_processes() -> None:
    ended = run(*PROBE, "--help", COLUMNS="200")
    assert ended.returncode == 0
    assert "the type of the process: web, applier, decision-engine, worker, relay, listener (web)\n" in ended.stdout


def test_site_with_an_invalid_key_is_not_probed() -> None:
    ended = run(*PROBE, SECRET_KEY="too-short")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
