"""A Python that has imported the libraries, and makes a new process of itself for each line that it reads.

Such a process has none of the site's own modules, and reads its settings as one that was started from nothing does.
What it need not do is to import Django and the like, which is most of a start.
"""

import importlib
import json
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

from tests.waiting import PATIENCE

# None that asks for Django's settings when it is imported: each process reads its own.
LIBRARIES = [
    "celery",
    "croniter",
    "csp.constants",
    "django.contrib.postgres.fields",
    "django.core.management.commands.diffsettings",
    "django.urls",
    "environs",
    "gunicorn.app.wsgiapp",
    "jsonschema",
    "psycopg",
    "requests",
    "structlog",
    "tenacity",
]


def execute(arguments: Sequence[str]) -> None:
    """Do what Python does with these arguments: a file, ``-m`` and a module, or ``-c`` and code."""
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


def status_of(arguments: Sequence[str]) -> int:
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


def live(arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[str]) -> None:
    """Be the new process, to its end: ``files`` are its input and what it prints on stdout and stderr."""
    signal.alarm(PATIENCE)
    for number, (path, flags) in enumerate(zip(files, (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        os.dup2(os.open(path, flags), number)
    os.environ.clear()
    os.environ.update(environment)
    status = status_of(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def start(order: dict[str, Any]) -> int:
    """Return the exit status, or the number of the signal that ended it as a negative one."""
    process = os.fork()
    if process == 0:
        live(**order)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


if __name__ == "__main__":
    for library in LIBRARIES:
        importlib.import_module(library)
    for line in sys.stdin:
        print(start(json.loads(line)), flush=True)  # noqa: T201
