"""The health check of the process of a container: ``python -m watcher_site.processes.probe``.

It requests ``/healthz`` of the web process like a client of the site, with one of the allowed host names. With the
name of another process, such as ``applier``, it requests ``/healthz`` on the port for the metrics of that process.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException
from typing import NoReturn

from django.core.exceptions import ImproperlyConfigured

from watcher_site.configuration.environment import PROCESSES
from watcher_site.processes.command_line import BAD_INPUT

SECONDS = 4
UNHEALTHY = 1
# The loopback addresses for a process that listens on all addresses.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104


class Parser(ArgumentParser):
    """A parser that prints an error as one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser("python -m watcher_site.processes.probe", description="Check the health of a process.")
    parser.add_argument(
        "process",
        nargs="?",
        choices=PROCESSES,
        default="web",
        metavar="PROCESS",
        help=f"the type of the process: {', '.join(PROCESSES)} (web)",
    )
    service = parser.parse_args(arguments).process
    try:
        from watcher_site import settings
    except ImproperlyConfigured as problem:
        sys.stderr.write(f"{problem}\n")
        return BAD_INPUT
    address, port = settings.BIND, settings.PORT
    if service != "web":
        if service not in settings.METRICS_PORTS:
            sys.stderr.write(f"WATCHER_METRICS_PORTS: names no port for {service}.\n")
            return BAD_INPUT
        address, port = settings.METRICS_BIND, settings.METRICS_PORTS[service][0]
    host = settings.ALLOWED_HOSTS[0].lstrip(".") if settings.ALLOWED_HOSTS else "localhost"
    connection = HTTPConnection(LOOPBACK.get(address, address), port, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz", headers={"Host": host})
        response = connection.getresponse()
    except (OSError, HTTPException) as problem:
        sys.stderr.write(f"{address}:{port} does not answer: {problem}\n")
        return UNHEALTHY
    finally:
        connection.close()
    if response.status != 200:
        sys.stderr.write(f"{address}:{port} answers {response.status} {response.reason}\n")
        return UNHEALTHY
    return 0


if __name__ == "__main__":
    sys.exit(main())
