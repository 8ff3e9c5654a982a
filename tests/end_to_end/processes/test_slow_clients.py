"""Clients that send no request or half a request, and the HTTP server of the site."""

import http.client
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.processes import ROOT
from tests.waiting import PATIENCE, wait_for
from tests.watcher_site.site_process import VALID_ENVIRONMENT, free_port_number
from watcher_site.web.gunicorn_worker import LONGEST_HEAD, is_complete

HEAD = b"GET /v1/goals HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Unfinished: ye"
BODY = (
    b"POST /v1/audits HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
)
FORM = (
    b"POST /console/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\nusername"
)
UPLOAD = (
    b"POST /console/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999999\r\n"
    b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n"
)
CHUNKS = b"POST /v1/audits HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"

# Without a database server: no request of these tests needs a database.
NO_DATABASE_URL = "postgres://watcher@127.0.0.1:1/watcher"


@contextmanager
def serving(**variables: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Start a site without a database, with one process of two threads; yields gunicorn and the port."""
    port = free_port_number()
    environment = {
        **VALID_ENVIRONMENT,
        "DATABASE_URL": NO_DATABASE_URL,
        "PORT": str(port),
        "WATCHER_HTTPS": "false",
        "WATCHER_WEB_WORKERS": "1",
        "WATCHER_WEB_THREADS": "2",
        "WATCHER_REQUEST_TIMEOUT": "3600",
        **variables,
    }
    command = [sys.executable, "-m", "gunicorn", "--config", "python:watcher_site.gunicorn"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: is_open(port))
        yield process, port
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a site that tests share. A request to it may take an hour to arrive."""
    with serving() as (_, number):
        yield number


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE).close()
    except OSError:
        return False
    return True


def health(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/healthz")
    return connection.getresponse().status


def open_and_send(port: int, number: int, data: bytes) -> list[socket.socket]:
    sockets = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(number)]
    for one in sockets:
        one.sendall(data)
    return sockets


def exchange(port: int, *parts: bytes) -> bytes:
    """Send requests on one connection, and return all responses until it is closed."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        for part in parts:
            connection.sendall(part)
        answered = b""
        while data := connection.recv(65536):
            answered += data
        return answered


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "data"),
    [(300, b""), (16, HEAD), (16, BODY), (16, FORM), (16, UPLOAD), (16, CHUNKS)],
    ids=["nothing", "half a head", "half a body", "half a form", "half an upload", "half a chunk"],
)
def test_site_responds_while_slow_clients_hold_connections(port: int, number: int, data: bytes) -> None:
    sockets = open_and_send(port, number, data)
    assert [health(port) for _ in range(10)] == [200] * 10
    for one in sockets:
        one.close()


@pytest.mark.slow
def test_search_of_5000_characters_reaches_the_site(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", f"/console/search/?q={'x' * 5000}")
    response = connection.getresponse()
    assert (response.status, response.headers["Location"].partition("?")[0]) == (302, "/console/login/")


@pytest.mark.slow
def test_connection_of_an_incomplete_request_is_closed_after_the_timeout() -> None:
    with serving(WATCHER_REQUEST_TIMEOUT="0.1") as (_, port):
        for data in (b"", HEAD, BODY):
            (one,) = open_and_send(port, 1, data)
            assert one.recv(100) == b""


@pytest.mark.slow
def test_oldest_waiting_connection_is_closed_over_the_connection_limit() -> None:
    with serving(WATCHER_WEB_CONNECTIONS="10") as (_, port):
        sockets = open_and_send(port, 40, b"")
        assert health(port) == 200
        assert sockets[0].recv(100) == b""
        for one in sockets:
            one.close()


@pytest.mark.slow
def test_pipelined_and_fragmented_requests_are_served(port: int) -> None:
    ask = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    last = ask + b"Connection: close\r\n\r\n"
    post = b"POST /v1/audits HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n\r\n{}"
    assert exchange(port, ask + b"\r\n" + ask + b"\r\n" + last).count(b"HTTP/1.1 200 OK") == 3
    assert exchange(port, *(bytes([byte]) for byte in last)).count(b"HTTP/1.1 200 OK") == 1
    answered = exchange(port, post[:-1], b"}" + ask[:9], ask[9:] + b"\r\n", last)
    assert [answered.count(status) for status in (b"HTTP/1.1 401 ", b"HTTP/1.1 200 ")] == [1, 2]


@pytest.mark.slow
def test_expect_100_continue_is_served(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(
            b"POST /v1/audits HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\n"
            b"Expect: 100-continue\r\nConnection: close\r\n\r\n"
        )
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(b"{}")
        answered = b""
        while data := connection.recv(1000):
            answered += data
        assert b"HTTP/1.1 401 " in answered


@pytest.mark.slow
def test_rest_of_a_refused_body_is_not_read_as_a_request(port: int) -> None:
    inner = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for head in (b"Content-Length: 9999999", b"Transfer-Encoding: chunked", b"Content-Length: 99999999999999999999"):
        answered = exchange(port, b"POST /v1/audits HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head + b"\r\n\r\n", inner)
        assert b"200 OK" not in answered
        assert answered.count(b"HTTP/1.1 ") <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Content-Length: 2\r\nContent-Length: 2",
        b"Content-Length: -2",
        b"Content-Length: +2",
        b"Transfer-Encoding: xchunked",
        b"X-Name : value",
        b"X-Name: value\r\n folded",
        b"X-Name: a\0b",
        b"X-Name: a\rb",
        b"Host: other.example.org",
    ],
)
def test_ambiguous_request_is_refused(port: int, lines: bytes) -> None:
    request = b"POST /v1/audits HTTP/1.1\r\nHost: 127.0.0.1\r\n" + lines + b"\r\n\r\n0\r\n\r\n"
    answered = exchange(port, request)
    assert answered == b"" or answered.split()[1] in {b"400", b"501"}


@pytest.mark.slow
def test_stopping_site_closes_incomplete_requests() -> None:
    with serving() as (process, port):
        (one,) = open_and_send(port, 1, HEAD)
        assert health(port) == 200
        process.terminate()
        assert one.recv(100) == b""
        wait_for(lambda: not is_open(port))


@pytest.mark.parametrize(
    ("received", "complete"),
    [
        (b"", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", True),
        (b"GET / HTTP/1.1\nHost: a\n\n", True),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab", False),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", True),
        (b"POST / HTTP/1.1\r\ncontent-length:3\r\n\r\nab", False),
        (b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", True),
        (b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", True),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", True),
        (b"POST / HTTP/1.1\r\nX: 1\r\n\r\nContent-Length: 9\r\n\r\n", True),
        (b"x" * (LONGEST_HEAD + 1), True),
    ],
)
def test_request_is_complete_with_its_head_and_an_accepted_body(received: bytes, complete: bool) -> None:
    assert is_complete(received) == complete
