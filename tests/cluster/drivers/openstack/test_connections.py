"""Connections to OpenStack services, which may close an idle connection while a request is sent over it."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from cluster.drivers.openstack.session import CloudSession


class ClosingHandler(BaseHTTPRequestHandler):
    """Responds to the first request over a connection, and closes the connection when it receives another one."""

    protocol_version = "HTTP/1.1"
    has_responded = False

    def respond(self) -> None:
        if self.has_responded:
            self.close_connection = True
            return
        self.has_responded = True
        self.send_response(204)
        self.end_headers()

    do_GET = do_POST = do_PATCH = do_DELETE = respond  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), ClosingHandler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
def test_request_with_side_effects_uses_a_new_connection(url: str, method: str) -> None:
    session = CloudSession()
    assert [session.request(url, each).status_code for each in ("GET", method, method)] == [204, 204, 204]
