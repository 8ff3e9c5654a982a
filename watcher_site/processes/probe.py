"""The health check of the process of a container: ``python -m watcher_site.processes.probe``.

It requests ``/healthz`` of the web process like a client of the site, with one of the allowed host names. With the
name of another process, such as ``applier``, it requests ``/healthz`` on the port for the metrics of that process.
"""

import sys
from http.client import HTTPConnection, HTTPException

from django.core.exceptions import ImproperlyConfigured

from watcher_site.processes.command_line import BAD_INPUT

SECONDS = 4
UNHEALTHY = 1
# The loopback addresses for a process that listens on all addresses.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104


def main(service: str = "web") -> int:
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
    sys.exit(main(*sys.argv[1:2]))
