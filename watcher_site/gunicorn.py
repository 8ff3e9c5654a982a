"""The configuration of gunicorn: ``gunicorn --config python:watcher_site.gunicorn``.

The names of settings are gunicorn's. All requests and messages of gunicorn are written to the site's structured log.
"""

import gc
import mmap
import socket
import sys
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NoReturn

import structlog
from django.core.exceptions import ImproperlyConfigured
from gunicorn import systemd
from gunicorn.errors import HaltServer
from gunicorn.glogging import Logger
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from watcher_site.monitoring.ports import listen_on_first
from watcher_site.monitoring.shared_folder import shared_folder
from watcher_site.monitoring.tracing import TRACE_ID, WEB, tracing
from watcher_site.processes.command_line import BAD_INPUT, describe_database_error
from watcher_site.refusals import Conflict, Invalid
from watcher_site.web.middleware import RequestId

try:
    from watcher_site import settings
except ImproperlyConfigured as problem:
    sys.stderr.write(f"{problem}\n")
    sys.exit(BAD_INPUT)

log = structlog.get_logger(__name__)
access_log = structlog.get_logger("gunicorn.access")


class AccessLogger(Logger):
    """Logs one line for each request: method, path, status, duration and client.

    The query and the headers are omitted, because they may contain secrets.
    """

    def access(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> None:
        headers = {name.lower(): value for name, value in resp.headers}
        access_log.info(
            "request",
            method=environ["REQUEST_METHOD"],
            path=environ.get("PATH_INFO", ""),
            status=resp.status_code,
            milliseconds=round(request_time / timedelta(milliseconds=1), 1),
            bytes=resp.sent,
            client=environ.get("REMOTE_ADDR"),
            request_id=headers.get(RequestId.header),
            **({"trace_id": environ[TRACE_ID]} if environ.get(TRACE_ID) else {}),
        )


wsgi_app = "watcher_site.wsgi"
bind = f"{settings.BIND}:{settings.PORT}"
worker_class = "watcher_site.web.gunicorn_worker.BufferingWorker"
workers = settings.WEB_WORKERS
threads = settings.WEB_THREADS
worker_connections = settings.WEB_CONNECTIONS + settings.WEB_THREADS
logger_class = AccessLogger
logconfig_dict = settings.LOGGING
control_socket_disable = True
# gunicorn's maximum: the site responds to too long searches and filters itself.
limit_request_line = 8190
# The proxies whose X-Forwarded-Proto sets the scheme; none if empty.
forwarded_allow_ips = ",".join(map(str, settings.TRUSTED_PROXIES))


# Memory that the main process and its workers share, for the reason why a worker refused to start.
REFUSAL_BYTES = 1000
refusal = mmap.mmap(-1, REFUSAL_BYTES)


# The seconds for which a start waits for a port that is in use.
PORT_SECONDS = 5
# The socket on which each worker serves the metrics of all workers.
metrics_listener: socket.socket | None = None


def on_starting(server: Any) -> None:
    try:
        # Otherwise an earlier main process, or systemd, has opened the sockets.
        if not (server.master_pid or systemd.listen_fds(unset_environment=False)):
            require_free_ports(server.cfg.address)
        if ports := settings.METRICS_PORTS.get("web"):
            open_metrics_port(ports)
    except Invalid as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(BAD_INPUT)
    shared_folder.create()


@retry(retry=retry_if_exception_type(Invalid), stop=stop_after_delay(PORT_SECONDS), wait=wait_fixed(0.1), reraise=True)
def require_free_ports(addresses: Iterable[Any]) -> None:
    """Raise `Invalid` if a port of the site is in use, for which gunicorn would log a line at each of its attempts.

    Like gunicorn, wait for the end of an earlier web process.
    """
    for host, port in (address for address in addresses if isinstance(address, tuple)):
        listen_on_first([port], host, "PORT", "WATCHER_BIND").close()


def open_metrics_port(ports: range) -> None:
    """Listen on the port for metrics in the main process, so that the loss of a worker does not close it."""
    global metrics_listener
    metrics_listener = listen_on_first(ports, settings.METRICS_BIND)
    log.info("metrics served", service_name=WEB, port=metrics_listener.getsockname()[1])


def on_exit(server: Any) -> None:
    shared_folder.remove()


def post_worker_init(worker: Any) -> None:
    end_without_migrations()
    start_tracing()
    if metrics_listener:
        serve_web_metrics(metrics_listener)
    configure_garbage_collection()


def serve_web_metrics(listener: socket.socket) -> None:
    # Loads prometheus_client, which only workers may do.
    from watcher_site.monitoring.exposition import web_registry
    from watcher_site.monitoring.server import serve

    serve(listener, web_registry())


def configure_garbage_collection() -> None:
    """Exempt the objects loaded at start, which are never freed, from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def end_without_migrations() -> None:
    """Exit if migrations are not applied or the SQLite file is damaged.

    Without a database the worker starts, and ``/readyz`` reports it.
    """
    # Django is loaded only in workers.
    from django.db import DatabaseError, OperationalError, connection

    from watcher_site.database.migration_state import require_applied_migrations

    try:
        require_applied_migrations()
    except OperationalError:
        return
    except DatabaseError as problem:
        if not (described := describe_database_error(problem)):
            raise
        end(described[0], "The database is damaged.")
    except Conflict as problem:
        end(str(problem), "Migrations are not applied.")
    finally:
        connection.close()


def start_tracing() -> None:
    try:
        tracing.start(WEB)
    except Invalid as problem:
        end(str(problem), "Traces cannot be sent.")


def end(line: str, reason: str) -> NoReturn:
    """End a worker, and then the server, with one line on standard error and the reason in the log."""
    # All workers write the same text.
    refusal[:] = f"{reason}\0{line}".encode()[:REFUSAL_BYTES].ljust(REFUSAL_BYTES, b"\0")
    sys.exit(BAD_INPUT)


def worker_exit(server: Any, worker: Any) -> None:
    """Send the remaining spans of a worker that has completed its last request."""
    tracing.stop()


def child_exit(server: Any, worker: Any) -> None:
    """Stop the server, instead of replacing the worker, if a worker refused to start."""
    if refusal[0] and server.num_workers:
        server.num_workers = 0
        reason, _, line = refusal[:].rstrip(b"\0").decode(errors="ignore").partition("\0")
        sys.stderr.write(f"{line}\n")
        raise HaltServer(reason, BAD_INPUT)
