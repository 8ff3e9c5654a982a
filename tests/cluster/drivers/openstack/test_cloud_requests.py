"""Requests to OpenStack: the ID of their cause, counts, traces, and connections that services close."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from pytest_django import Settings
from structlog.contextvars import bound_contextvars

from cluster.drivers.base import CloudError
from cluster.drivers.openstack.access import Access
from cluster.drivers.openstack.session import CloudSession
from tests.cluster.emulator.server import Emulator, Fault
from tests.watcher_site.monitoring.samples import growth_of
from tests.watcher_site.monitoring.spans import recording
from watcher_site.monitoring.tracing import tracing

REQUEST = "req-7f986313-418d-4229-a3fe-abf0dca14347"
ACTION = "5b1f4f0e-3d0a-4b39-9d36-3d1b4f6f8b11"
FLAVORS = "GET /compute/v2.1/flavors"


def read_flavors() -> None:
    Access().read(lambda cloud: list(cloud.compute.flavors()))


def test_request_to_nova_has_the_id_of_the_api_request(emulator: Emulator) -> None:
    with bound_contextvars(request_id=REQUEST):
        read_flavors()
    assert {REQUEST} == {found for line, found in emulator.request_ids if line.startswith(FLAVORS)}


def test_request_of_an_action_has_the_id_of_the_action(emulator: Emulator) -> None:
    with bound_contextvars(action=ACTION):
        read_flavors()
    assert {f"req-{ACTION}"} == {found for line, found in emulator.request_ids if line.startswith(FLAVORS)}


def test_request_of_an_audit_has_the_id_of_the_audit(emulator: Emulator) -> None:
    with bound_contextvars(audit=ACTION):
        read_flavors()
    assert {f"req-{ACTION}"} == {found for line, found in emulator.request_ids if line.startswith(FLAVORS)}


def test_other_requests_have_no_id(emulator: Emulator) -> None:
    read_flavors()
    assert {found for _, found in emulator.request_ids} == {None}


def test_request_is_counted_by_service_and_status(emulator: Emulator) -> None:
    labels = {"service": "compute", "method": "GET", "status": "200"}
    with growth_of("watcher_cloud_requests_total", **labels) as growth:
        read_flavors()
    assert growth.value >= 1


@pytest.mark.parametrize(("status", "counted"), [(500, "500"), (0, "0")], ids=["error", "lost"])
def test_failed_request_is_counted(emulator: Emulator, settings: Settings, status: int, counted: str) -> None:
    settings.OPENSTACK_ATTEMPTS = 1
    emulator.faults.append(Fault(FLAVORS, status=status, times=10))
    labels = {"service": "compute", "method": "GET", "status": counted}
    with growth_of("watcher_cloud_requests_total", **labels) as growth, pytest.raises(CloudError):
        read_flavors()
    assert growth.value >= 1


def test_request_to_nova_has_a_span_and_a_traceparent(emulator: Emulator) -> None:
    with recording() as exporter, tracing.span("run migrate", {}), bound_contextvars(request_id=REQUEST):
        read_flavors()
    span = next(span for span in exporter.get_finished_spans() if span.name == "GET compute")
    found = dict(span.attributes or {})
    assert (found["http.response.status_code"], found["watcher.request_id"]) == (200, REQUEST)
    sent = {parent.rpartition("-")[0] for line, parent in emulator.traceparents if parent and line.startswith(FLAVORS)}
    assert sent == {f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}"}


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
