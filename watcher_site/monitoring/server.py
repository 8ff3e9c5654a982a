"""The HTTP server of a process for its metrics, on a port of its own."""

import socket
from collections.abc import Sequence
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


class RequestHandler(WSGIRequestHandler):
    """The handler of requests, which logs none."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


class MetricsServer(ThreadingWSGIServer):
    """The server of a socket that listens already. `prometheus_client.start_http_server` always opens a new one."""

    def __init__(self, listener: socket.socket, registry: CollectorRegistry) -> None:
        host, port = listener.getsockname()[:2]
        super().__init__((host, port), RequestHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_name, self.server_port = host, port
        self.setup_environ()
        self.set_app(make_wsgi_app(registry))


def serve(listener: socket.socket, registry: CollectorRegistry) -> None:
    """Serve the metrics of a registry in a thread, until the process ends."""
    initialize_counters()
    Thread(target=MetricsServer(listener, registry).serve_forever, name="metrics", daemon=True).start()


def ports_of(service: str) -> Sequence[int]:
    """Return the ports for the processes of a service, such as ``watcher-applier``; none if it serves no metrics."""
    ports: Sequence[int] = settings.METRICS_PORTS.get(service.removeprefix("watcher-"), ())
    return ports


def serve_metrics(service: str) -> None:
    """Serve the metrics of this process on the first free port of its service, if it has any.

    Raises:
        Invalid: all ports are in use, or the address is not one of this machine.
    """
    if ports := ports_of(service):
        listener = listen_on_first(ports, settings.METRICS_BIND)
        serve(listener, REGISTRY)
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
