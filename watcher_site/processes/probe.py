"""The health check of the web process on this machine, for containers: ``python -m watcher_site.processes.probe``.

It requests ``/healthz`` like a client of the site, with one of the allowed host names.
"""

import sys
from http.client import HTTPConnection, HTTPException

from django.core.exceptions import ImproperlyConfigured

from watcher_site.processes.command_line import BAD_INPUT

SECONDS = 4
UNHEALTHY = 1
# The loopback addresses for a process that listens on all addresses.
LOOPBACK = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104


def main() -> int:
    try:
        from watcher_site import settings
    except ImproperlyConfigured as problem:
        sys.stderr.write(f"{problem}\n")
        return BAD_INPUT
    host = settings.ALLOWED_HOSTS[0].lstrip(".") if settings.ALLOWED_HOSTS else "localhost"
    connection = HTTPConnection(LOOPBACK.get(settings.BIND, settings.BIND), settings.PORT, timeout=SECONDS)
    try:
        connection.request("GET", "/healthz", headers={"Host": host})
        response = connection.getresponse()
    except (OSError, HTTPException) as problem:
        sys.stderr.write(f"{settings.BIND}:{settings.PORT} does not answer: {problem}\n")
        return UNHEALTHY
    finally:
        connection.close()
    if response.status != 200:
        sys.stderr.write(f"{settings.BIND}:{settings.PORT} answers {response.status} {response.reason}\n")
        return UNHEALTHY
    return 0


if __name__ == "__main__":
    sys.exit(main())
