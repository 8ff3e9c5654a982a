"""The configuration of gunicorn: ``gunicorn --config python:watcher_site.gunicorn``.

Names are gunicorn's own. Every request and every message of gunicorn goes through the site's structured log.
"""

import gc
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured
from gunicorn.glogging import Logger

from watcher_site.monitoring.shared_folder import shared_folder
from watcher_site.processes.command_line import BAD_INPUT
from watcher_site.web.middleware import RequestId

try:
    from watcher_site import settings
except ImproperlyConfigured as problem:
    sys.stderr.write(f"{problem}\n")
    sys.exit(BAD_INPUT)

access_log = structlog.get_logger("gunicorn.access")


class AccessLogger(Logger):
    """Logs one line for each request: method, path, status, duration and client.

    The query and the headers are left out, as they may hold secrets.
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
# The proxies whose X-Forwarded-Proto sets the scheme; none, if this is empty.
forwarded_allow_ips = ",".join(map(str, settings.TRUSTED_PROXIES))


def on_starting(server: Any) -> None:
    shared_folder.create()


def on_exit(server: Any) -> None:
    shared_folder.remove()


def post_worker_init(worker: Any) -> None:
    """Exclude the objects loaded at start, which never become garbage, from every later garbage collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
