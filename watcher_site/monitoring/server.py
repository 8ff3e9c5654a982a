"""The HTTP server for the metrics of processes other than the web process."""

import errno
import socket
from collections.abc import Sequence

import structlog
from django.conf import settings
from prometheus_client import start_http_server

from watcher_site.monitoring.exposition import initialize_counters
from watcher_site.refusals import Invalid

log = structlog.get_logger(__name__)
VARIABLE = "WATCHER_METRICS_PORTS"


def ports_of(service: str) -> Sequence[int]:
    """Return the ports for the processes of a service, such as ``watcher-applier``; none if it serves no metrics."""
    ports: Sequence[int] = settings.METRICS_PORTS.get(service.removeprefix("watcher-"), ())
    return ports


def serve_metrics(service: str) -> None:
    """Serve the metrics of this process on the first free port of its service, if it has any.

    Raises:
        Invalid: all ports are in use, or the address is not one of this machine.
    """
    ports = ports_of(service)
    for port in ports:
        try:
            start_http_server(port, addr=settings.METRICS_BIND)
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE:
                raise Invalid(f"WATCHER_METRICS_BIND, {VARIABLE}: {problem.strerror or problem}.") from problem
        else:
            initialize_counters()
            log.info("metrics served", service_name=service, port=port)
            return
    if ports:
        taken = f"port {ports[0]} is" if len(ports) == 1 else f"all ports from {ports[0]} to {ports[-1]} are"
        raise Invalid(f"{VARIABLE}: {taken} in use.")


def require_ports(service: str, number: int) -> None:
    """Require a free port for each process of a service on this machine.

    Raises:
        Invalid: there are too few.
    """
    ports = ports_of(service)
    if ports and sum(map(is_free, ports)) < number:
        name = service.removeprefix("watcher-")
        raise Invalid(
            f"{VARIABLE}: {name} needs {number} free ports, one for each of its processes, as in {name}=9110-9117."
        )


def is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in settings.METRICS_BIND else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.METRICS_BIND, port))
        except OSError:
            return False
    return True
