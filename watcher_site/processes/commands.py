"""The base class of management commands, which print one line and exit with status 2 for invalid input."""

import getpass
import logging
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any
from unicodedata import category

from django.core.management import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, ProgrammingError

from watcher_site.database.migration_state import require_applied_migrations
from watcher_site.history.recording import describe_refusal, is_recorded, record_refusal
from watcher_site.models.history import TEXT_LENGTH
from watcher_site.processes.command_line import BAD_INPUT, OUT_OF_ORDER, describe_database_error, one_line
from watcher_site.refusals import Conflict, Refused
from watcher_site.request_context import CallingContext, on_behalf_of
from watcher_site.validation import INVISIBLE


def operator() -> str:
    """Return the operating system's name of the user who runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "an operator"


def caller(person: str) -> CallingContext:
    """Return the calling context of a command that is run on behalf of a user."""
    return CallingContext(user=person)


def add_person(parser: CommandParser) -> None:
    """Add an option for the user on whose behalf the command runs, which history records."""
    parser.add_argument(
        "--as",
        dest="person",
        type=read_person,
        default=operator(),
        help="the user that history records: any name, with or without an account (your own name)",
    )


def read_person(text: str) -> str:
    """Return a name for history, which need not be that of an account. Raises: `ArgumentTypeError`."""
    name = text.strip()
    if not 0 < len(name) <= TEXT_LENGTH or any(category(character) in INVISIBLE for character in name):
        raise ArgumentTypeError(f"must be a name of 1 to {TEXT_LENGTH} characters, without control characters")
    return name


def strip_whitespace(value: Any) -> Any:
    """Return the value of an option without surrounding white space, with which identifiers are often pasted."""
    if isinstance(value, list):
        return [strip_whitespace(item) for item in value]
    return value.strip() if isinstance(value, str) else value


def require_schema(problem: DatabaseError) -> None:
    """Raise `CommandError` if an error of the database has its cause in unapplied migrations."""
    if not isinstance(problem, ProgrammingError) and not str(problem).startswith(("no such table", "no such column")):
        return
    try:
        require_applied_migrations()
    except Conflict as refusal:
        raise CommandError(str(refusal), returncode=BAD_INPUT) from problem


@contextmanager
def log_warnings_only() -> Iterator[None]:
    """Log no events, because a command prints its result itself, and history records them."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(max(logging.WARNING, level))
    try:
        yield
    finally:
        root.setLevel(level)


class NotConfirmed(Refused):
    """The user answered a confirmation with no."""


class Command(BaseCommand):
    """A command whose refusals are exceptions of the class `Refused`.

    On the command line, a refusal or an invalid argument prints one line and exits with status 2, and a lost database
    or a question that is answered with no exits with status 1; ``call_command`` raises `CommandError`.
    ``--traceback`` shows the traceback. The log has warnings and errors only, except for services; ``--verbosity 2``
    adds events.
    """

    # The prefix of the line; empty if the line begins with a file and line number, to which editors can jump.
    refusal_prefix = "CommandError: "
    # True for services, which refuse to start while migrations are not applied.
    requires_migrations_checks = False
    # True if a user acts by this command, which history records; false for services.
    acts_for_person = True
    _called_from_command_line: bool  # Set by Django.

    def create_parser(self, prog_name: str, subcommand: str, **options: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **options)
        # So that it raises CommandError, instead of printing the usage before the error.
        parser.called_from_command_line = False
        return parser

    def event(self) -> str:
        """Return the history event of a refusal of the command."""
        return f"command.{type(self).__module__.rpartition('.')[2]}"

    def status_of(self, refusal: Refused) -> int:
        """Return the exit status of a refusal."""
        return OUT_OF_ORDER if isinstance(refusal, NotConfirmed) else BAD_INPUT

    def note(self, refusal: Refused, person: str) -> None:
        """Record the refusal of the command in history, if the database is writable."""
        with suppress(DatabaseError), on_behalf_of(partial(caller, person)):
            record_refusal(self.event(), None, describe_refusal(refusal))

    def check_migrations(self) -> None:
        require_applied_migrations()

    def run_from_argv(self, argv: list[str]) -> None:
        try:
            super().run_from_argv(argv)
        except CommandError as problem:
            if "--traceback" in argv:
                raise
            self.stderr.write(f"CommandError: {one_line(problem).removeprefix('Error: ')}")
            sys.exit(BAD_INPUT)

    def execute(self, *args: Any, **options: Any) -> str | None:
        options = {name: strip_whitespace(value) for name, value in options.items()}
        person = options.get("person") or operator()
        is_quiet = self.acts_for_person and self._called_from_command_line and options["verbosity"] < 2
        try:
            with (
                log_warnings_only() if is_quiet else nullcontext(),
                on_behalf_of(partial(caller, person) if self.acts_for_person else None),
            ):
                return super().execute(*args, **options)
        except Refused as refusal:
            if is_recorded(refusal) and self.acts_for_person:
                self.note(refusal, person)
            if self._called_from_command_line and not options["traceback"]:
                self.stderr.write(f"{self.refusal_prefix}{one_line(refusal)}")
                sys.exit(self.status_of(refusal))
            raise CommandError(one_line(refusal), returncode=self.status_of(refusal)) from refusal
        except DatabaseError as problem:
            require_schema(problem)
            if not (described := describe_database_error(problem)):
                raise
            line, status = described
            raise CommandError(line, returncode=status) from problem
