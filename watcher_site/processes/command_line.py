# PYTHON_ARGCOMPLETE_OK
"""The command line: ``manage.py`` in a checkout, ``watcher-site`` in an installation from a wheel.

Errors that the user can correct are printed as one line on standard error, with an exit status, also for Django's
commands.
"""

import os
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from errno import ENOSPC
from functools import partial
from importlib import metadata
from io import StringIO
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import ManagementUtility, get_commands
from django.core.management.base import SystemCheckError
from django.db import DatabaseError, OperationalError

from watcher_site.processes import completion
from watcher_site.refusals import Refused

BAD_INPUT = 2
OUT_OF_ORDER = 1
# The names of SQLite's errors, which have suffixes.
DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
# The exit statuses that shells use for SIGINT and SIGPIPE.
INTERRUPTED = 130
BROKEN_PIPE = 141


def one_line(problem: object) -> str:
    return " ".join(str(problem).split())


def describe_database_error(problem: DatabaseError) -> tuple[str, int] | None:
    """Return a line and the exit status for a database that does not respond or is damaged, and None for other errors.

    psycopg puts causes and hints into further lines.
    """
    if isinstance(problem, OperationalError):
        lines = [" ".join(line.split()) for line in str(problem).splitlines() if line.strip()]
        ended = " ".join(line if line.endswith((".", ":", "?", "!")) else f"{line}." for line in lines)
        return f"database: {ended}", OUT_OF_ORDER
    if getattr(problem.__cause__, "sqlite_errorname", "").startswith(DAMAGED):
        file = settings.DATABASES["default"]["NAME"]
        return f"DATABASE_URL: the SQLite database {file} is damaged ({problem}). Restore a backup.", BAD_INPUT
    return None


def check_in_lines(check: Callable[..., None], display_num_errors: bool = False, **options: Any) -> None:
    """Run the system checks of a command by its method ``check``.

    Raises:
        SystemCheckError: checks failed; the message has one line for each of them.
    """
    try:
        check(display_num_errors=display_num_errors, **options)
    except SystemCheckError as problem:
        # The exception has only the text that Django composed.
        failed = [one for one in run_checks(**options) if one.is_serious() and not one.is_silenced()]
        lines = [one_line(one).removeprefix(f"?: ({one.id}) ") for one in failed]
        raise SystemCheckError("\n".join(lines), returncode=BAD_INPUT) from problem


class CommandLine(ManagementUtility):
    """Django's command line with the version of the site, one-line errors, and completion of objects."""

    def execute(self) -> None:
        if self.argv[1:] in (["--version"], ["version"]):
            sys.stdout.write(f"Watcher Site {metadata.version('watcher-site')}, Django {django.get_version()}\n")
        else:
            super().execute()

    def autocomplete(self) -> None:
        if completion.is_completing():
            completion.complete(self.prog_name)

    def fetch_command(self, subcommand: str) -> Any:
        # A command stores the stderr that it is created with.
        if subcommand in get_commands():
            command: Any = super().fetch_command(subcommand)
            if subcommand != "check":
                command.check = partial(check_in_lines, command.check)
            return command
        printed = StringIO()
        try:
            with redirect_stderr(printed):
                return super().fetch_command(subcommand)
        except SystemExit:
            lines = [line if line.endswith(("?", ".")) else f"{line}." for line in printed.getvalue().splitlines()]
            sys.stderr.write(" ".join(lines) + "\n")
            sys.exit(BAD_INPUT)


def run_command(arguments: list[str]) -> int:
    """Run a command, and return the exit status. It ends silently if the reader of its output has ended."""
    try:
        try:
            return report_problems(arguments)
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        return BROKEN_PIPE
    except OSError as problem:
        if problem.errno != ENOSPC or "--traceback" in arguments:
            raise
        discard_output()
        sys.stderr.write(f"Output cannot be written: {problem.strerror}\n")
        return OUT_OF_ORDER


def discard_output() -> None:
    """Discard the remaining output, which Python would write at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def report_problems(arguments: list[str]) -> int:
    """Run a command, and return the exit status. ``--traceback`` shows the traceback of an error."""
    shown = () if "--traceback" in arguments else (ImproperlyConfigured, Refused, DatabaseError)
    try:
        CommandLine(arguments).execute()
    except KeyboardInterrupt:
        return INTERRUPTED
    except shown as problem:
        described: tuple[str, int] | None = one_line(problem), BAD_INPUT
        if isinstance(problem, DatabaseError):
            described = describe_database_error(problem)
        if described is None:
            raise
        line, status = described
        sys.stderr.write(f"{line}\n")
        return status
    return 0


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "watcher_site.settings")
    name = "manage.py" if Path(sys.argv[0]).name == "manage.py" else "watcher-site"
    return run_command([name, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
