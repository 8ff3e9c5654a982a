"""The HTTP server of a process for its metrics and its health check, on a port of its own."""

import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler

import structlog
from django.conf import settings
from prometheus_client import REGISTRY, CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from watcher_site.monitoring.exposition import initialize_counters
from watcher_site.monitoring.ports import VARIABLE, is_free, listen_on_first
from watcher_site.refusals import Invalid

log = structlog.get_logger(__name__)
FindProblem = Callable[[], str | None]


class RequestHandler(WSGIRequestHandler):
    """The handler of requests, which logs none, and closes connections whose client is silent or lost."""

    # The seconds for which it waits for a client. Without a limit, each silent client would keep a thread.
    timeout = 10

    def handle(self) -> None:
        with suppress(TimeoutError, ConnectionError):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class MetricsServer(ThreadingWSGIServer):
    """The server of a socket that listens already. `prometheus_client.start_http_server` always opens a new one."""

    def __init__(self, listener: socket.socket, application: Any) -> None:
        host, port = listener.getsockname()[:2]
        super().__init__((host, port), RequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = host, port
        self.setup_environ()
        self.set_app(application)


def make_application(registry: CollectorRegistry, find_problem: FindProblem | None) -> Any:
    """Return the WSGI application: ``/healthz`` if the process has a check, and metrics at all other paths."""
    metrics = make_wsgi_app(registry)

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != "/healthz":
            answer: Iterable[bytes] = metrics(environ, start_response)
            return answer
        if find_problem is None:
            status, line = "404 Not Found", "This process has no health check here."
        elif problem := find_problem():
            status, line = "503 Service Unavailable", problem
        else:
            status, line = "200 OK", "The main loop runs."
        start_response(status, [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")])
        return [f"{line}\n".encode()]

    return application


def serve(listener: socket.socket, registry: CollectorRegistry, find_problem: FindProblem | None = None) -> None:
    """Serve the metrics of a registry, and the health check of this process, in a thread until the process ends."""
    initialize_counters()
    server = MetricsServer(listener, make_application(registry, find_problem))
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()


def ports_of(service: str) -> Sequence[int]:
    """Return the ports for the processes of a service, such as ``watcher-applier``; none if it serves no metrics."""
    ports: Sequence[int] = settings.METRICS_PORTS.get(service.removeprefix("watcher-"), ())
    return ports


def serve_metrics(service: str, find_problem: FindProblem | None = None) -> None:
    """Serve the metrics of this process on the first free port of its service, if it has any.

    Args:
        find_problem: the health check, which returns why the process has to be started again.

    Raises:
        Invalid: all ports are in use, or the address is not one of this machine.
    """
    if ports := ports_of(service):
        listener = listen_on_first(ports, settings.METRICS_BIND)
        serve(listener, REGISTRY, find_problem)
        log.info("metrics served", service_name=service, port=listener.getsockname()[1])


def require_ports(service: str, number: int) -> None:
    """Require a free port for each process of a service on this machine.

    Raises:
        Invalid: there are too few.
    """
    ports = ports_of(service)
    if ports and sum(is_free(port, settings.METRICS_BIND) for port in ports) < number:
        name = service.removeprefix("watcher-")
        raise Invalid(
            f"{VARIABLE}: {name} needs {number} free ports, one for each of its processes, as in {name}=9110-9117."
        )
