"""The fork servers of `tests.processes`: a Python that has imported the libraries forks for each process of a test.

Such a process reads its settings and imports the site's modules itself, as one that ``python`` starts does. A process
with the arguments ``["site"]`` becomes a fork server that has also loaded the site with its environment.

The server reads orders from the socket that is its standard input. An order is JSON, and comes with four files: the
connection to the test, and the standard input, output and error of the process. The connection carries the id of the
process, then its exit status; the process is reaped when the test has closed the connection.
"""

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import django
from django.conf import settings
from django.core.management import call_command, get_commands, load_command_class
from django.db import connections

# Large libraries of the site, or the part of one that imports the rest. None reads Django's settings on import.
LIBRARIES = [
    "celery.app.amqp",
    "celery.app.control",
    "celery.apps.worker",
    "celery.concurrency.prefork",
    "celery.events.state",
    "celery.worker.components",
    "celery.worker.consumer",
    "cloudevents.core.bindings.http",
    "crispy_forms.layout",
    "croniter",
    "cryptography.fernet",
    "csp.middleware",
    "django.contrib.admindocs.views",
    "django.contrib.postgres.fields",
    "django.contrib.sessions.middleware",
    "django.core.management.commands.diffsettings",
    "django.core.management.commands.makemigrations",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "django.test.client",
    "django.test.signals",
    "django_filters.views",
    "django_fsm.signals",
    "drf_spectacular.utils",
    "environs",
    "gunicorn.app.wsgiapp",
    "gunicorn.workers.gthread",
    "jsonschema",
    "kombu.transport.pyamqp",
    "orjson",
    "prometheus_client.openmetrics.exposition",
    "psycopg",
    "requests_hardened",
    "rest_framework.metadata",
    "rest_framework.mixins",
    "standardwebhooks",
    "structlog",
    "tenacity",
    "whitenoise.middleware",
]
# In bytes; an order holds the environment of the process.
LARGEST_ORDER = 2**17


def serve() -> list[str]:
    """Fork for each order until the test process ends. In a new process, return the arguments of its order."""
    # A fork has no other thread than the one that forks.
    assert threading.active_count() == 1
    gc.freeze()
    orders = socket.socket(fileno=os.dup(0))
    signal.signal(signal.SIGCHLD, reap)
    # Ctrl-C is for the test process, whose end is that of the server.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        message, files, _, _ = socket.recv_fds(orders, LARGEST_ORDER, 4)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            orders.close()
            return start(socket.socket(fileno=files[0]), files[1:], json.loads(message))
        for file in files:
            os.close(file)


def reap(*_: object) -> None:
    """Reap the watchers that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def start(connection: socket.socket, streams: Sequence[int], order: Mapping[str, Any]) -> list[str]:
    """Fork the process of an order, and return its arguments there; watch it, and exit, in the process that forks."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process = os.fork()
    if process:
        watch(process, connection, streams)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prepare(streams, **order)
    connection.send(b"started %d" % os.getpid())
    connection.close()
    return list(order["arguments"])


def watch(process: int, connection: socket.socket, streams: Sequence[int]) -> NoReturn:
    """Send the exit status of a process as `subprocess` states it, reap the process when the test knows, and exit."""
    for stream in streams:
        os.close(stream)
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    assert ended
    status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    with suppress(OSError):  # The test process may have ended before.
        connection.send(b"ended %d" % status)
        connection.recv(1)
    os.waitpid(process, 0)
    os._exit(0)


def prepare(
    streams: Sequence[int], arguments: Sequence[str], environment: Mapping[str, str], folder: str, new_session: bool
) -> None:
    """Give this process the standard files, environment, folder, session and import path of its order."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if new_session:
        os.setsid()
    first = folder if arguments[0] in {"-c", "-m"} else os.path.dirname(os.path.abspath(arguments[0]))
    sys.path[:1] = [first, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]


def load_site() -> None:
    """Load the settings, models, pages and management commands of the site."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "watcher_site.settings")
    django.setup()
    call_command("check", stdout=io.StringIO())
    for command, app in get_commands().items():
        load_command_class(app, command)
    if settings.CLOUD_NOTIFICATION_URL:
        importlib.import_module("cluster.drivers.openstack.notifications.listener").import_transport()
    connections.close_all()


def execute(arguments: Sequence[str]) -> None:
    """Run the arguments of ``python``: a file, ``-m`` and a module, or ``-c`` and code."""
    kind, *rest = arguments
    if kind == "-c":
        sys.argv = [kind, *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102
    elif kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")


def exit_status(arguments: Sequence[str]) -> int:
    """Run the arguments of ``python``, and return the status that they end with."""
    try:
        execute(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def exit_process() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    status = 0
    # Called after all other exit functions, in place of the destruction of all modules, which takes 0.07 s.
    atexit.register(exit_process)
    for library in LIBRARIES:
        importlib.import_module(library)
    order = serve()
    if order == ["site"]:
        load_site()
        order = serve()
    status = exit_status(order)
