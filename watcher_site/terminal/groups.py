"""The base classes of commands with subcommands, and the subcommands that all resources share."""

import sys
from abc import abstractmethod
from argparse import SUPPRESS, ArgumentTypeError
from collections.abc import Sequence
from typing import Any, ClassVar

from django.core.management import CommandParser
from django.db import DatabaseError
from django_fsm import ConcurrentTransition, TransitionNotAllowed
from rest_framework.exceptions import APIException

from watcher_site.api.errors import describe_error
from watcher_site.database.text import require_storable
from watcher_site.processes import commands
from watcher_site.refusals import Conflict, Invalid, Refused
from watcher_site.terminal.output import FORMATS, TABLE, Printer
from watcher_site.terminal.resources import Resource, find_related


class Subcommand:
    """A subcommand of a group. Subclasses set a name and a help text, and call one operation in `handle`."""

    name: str
    help: str

    def __init__(self, group: "CommandGroup") -> None:
        self.group = group

    @property
    def resource(self) -> Resource:
        return self.group.resource

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments of the subcommand."""

    @abstractmethod
    def handle(self, **options: Any) -> str | None:
        """Call the operation, and return the text to print, if there is one."""

    def add_format(self, parser: CommandParser, default: str | None = TABLE) -> None:
        text = "table, json or csv" + (" (%(default)s)" if default else "; prints the changed object")
        parser.add_argument("--format", choices=FORMATS, default=default, metavar="FORMAT", help=text)

    def add_columns(self, parser: CommandParser) -> None:
        chosen = parser.add_argument(
            "--columns",
            type=lambda text: text.split(","),
            metavar="FIELD[,FIELD...]",
            help=f"fields to print: {', '.join(self.resource.fields)}",
        )
        chosen.completer = lambda **_: self.resource.fields  # type: ignore[attr-defined]

    def add_object(self, parser: CommandParser, dest: str = "object", **options: Any) -> None:
        resource = self.resource
        name = "its name, " if resource.named_by else ""
        added = parser.add_argument(
            dest,
            metavar=resource.title.replace(" ", "_").upper(),
            help=f"{name}its UUID or the beginning of its UUID" if resource.named_by != "username" else "its name",
            **options,
        )
        added.completer = self.complete  # type: ignore[attr-defined]

    def complete(self, prefix: str, **_: Any) -> list[str]:
        try:
            return self.resource.candidates(prefix)
        except (DatabaseError, Refused):
            return []

    def printer(self, options: dict[str, Any]) -> Printer:
        resource = self.resource
        return Printer(self.group.stdout, options["format"], resource.times, resource.identifier, options)

    def fields(self, chosen: list[str] | None, default: Sequence[str]) -> Sequence[str]:
        """Return the fields to print.

        Raises:
            Invalid: the resource does not have a field.
        """
        for name in chosen or ():
            if name not in self.resource.fields:
                known = ", ".join(self.resource.fields)
                raise Invalid(f"--columns: there is no field {name!r}. It must be some of {known}.")
        return chosen or default

    def print_object(self, record: Any, options: dict[str, Any]) -> None:
        resource = self.resource
        row = resource.row(record)
        self.printer(options).print_one(row, self.fields(options.get("columns"), resource.fields))


class ListObjects(Subcommand):
    name = "list"

    @property
    def help(self) -> str:  # type: ignore[override]
        return f"List {self.resource.plural}."

    def add_arguments(self, parser: CommandParser) -> None:
        offer, view = self.resource.offer, self.resource.view
        for name in offer.filters:
            declared = self.resource.filters.get(name)
            schema = view.filter_schemas.get(name, {})
            values = schema.get("enum") if "boolean" not in str(schema.get("type", "")) else None
            text = declared.help if declared else f"only objects with this {name.replace('_', ' ')}"
            added = parser.add_argument(
                declared.option if declared else f"--{name.replace('_', '-')}",
                dest=f"filter_{name}",
                action="append" if name in offer.repeatable else "store",
                metavar="VALUE",
                help=f"{text}; may be repeated" if name in offer.repeatable else text,
            )
            added.completer = lambda known=values, **_: known or ()  # type: ignore[attr-defined]
        parser.add_argument(
            "--sort",
            metavar="KEY[:asc|:desc][,...]",
            help=f"the sort order, by some of {', '.join(offer.sort_keys)}; by id by default",
        ).completer = lambda **_: list(offer.sort_keys)  # type: ignore[attr-defined]
        parser.add_argument(
            "--limit", type=read_limit_option, metavar="N", help="the maximum number of objects; all by default"
        )
        self.add_columns(parser)
        self.add_format(parser)

    def handle(self, **options: Any) -> None:
        arguments: dict[str, Any] = {"sort": options["sort"]} if options["sort"] is not None else {}
        for name in self.resource.offer.filters:
            value = options[f"filter_{name}"]
            if value is not None:
                arguments[name] = self.read_filter(name, value)
        fields = self.fields(options["columns"], self.resource.columns)
        pages = self.resource.pages(arguments, options["limit"])
        self.printer(options).print_list(pages, fields, is_chosen=bool(options["columns"]))

    def read_filter(self, name: str, value: Any) -> Any:
        declared = self.resource.filters.get(name)
        return str(find_related(declared, value)) if declared and declared.model else value


class ShowObject(Subcommand):
    name = "show"

    @property
    def help(self) -> str:  # type: ignore[override]
        return f"Show the fields of one of the {self.resource.plural}."

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_object(parser)
        self.add_columns(parser)
        self.add_format(parser)

    def handle(self, **options: Any) -> None:
        self.print_object(self.resource.find(options["object"]), options)


class Operation(Subcommand):
    """A subcommand that changes one object. Subclasses call the operation in `apply`.

    ``question`` is the text to confirm, with ``{title}`` and ``{name}`` of the object; empty without a confirmation.
    """

    question = ""

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_object(parser)
        self.add_options(parser)
        if self.question:
            add_confirmation(parser)
        self.add_format(parser, default=None)
        commands.add_person(parser)

    def add_options(self, parser: CommandParser) -> None:
        """Add the arguments other than the object."""

    def handle(self, **options: Any) -> str | None:
        record = self.resource.find(options["object"])
        if self.question:
            self.confirm(self.question.format(title=self.resource.title, name=self.name_of(record)), options["yes"])
        changed = self.apply(record, **options) or record
        if options["format"]:
            self.print_object(changed, options)
            return None
        return self.outcome(type(changed)._default_manager.get(pk=changed.pk))

    @abstractmethod
    def apply(self, record: Any, **options: Any) -> Any:
        """Change the object, and return another one if that is the result."""

    def outcome(self, record: Any) -> str:
        return f"{self.resource.title} {self.name_of(record)}: {record.state}"

    def name_of(self, record: Any) -> str:
        return str(record.uuid)

    def confirm(self, question: str, confirmed: bool) -> None:
        require_confirmation(question, confirmed)


def delegate(called: str, command: type[commands.Command]) -> type[Subcommand]:
    """Return a subcommand that runs another command."""

    class Delegate(Subcommand):
        name, help = called, str(command.help)

        def add_arguments(self, parser: CommandParser) -> None:
            command().add_arguments(parser)

        def handle(self, **options: Any) -> str | None:
            delegated = command()
            delegated.stdout, delegated.stderr = self.group.stdout, self.group.stderr
            printed: str | None = delegated.handle(**options)
            return printed

    return Delegate


class CommandGroup(commands.Command):
    """A command whose subcommands list, show and change objects of one resource."""

    resource: ClassVar[Resource]
    subcommands: ClassVar[Sequence[type[Subcommand]]]
    subcommand = ""
    parsers: dict[str, CommandParser]

    def add_arguments(self, parser: CommandParser) -> None:
        # Inherited by the parsers of subcommands, so that errors are raised and printed in one line.
        parser.called_from_command_line = False
        added = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND", title="subcommands")
        self.parsers, self.members = {}, {}
        for kind in self.subcommands:
            member = kind(self)
            subparser = added.add_parser(member.name, help=member.help, description=member.help)
            member.add_arguments(subparser)
            add_inherited(subparser)
            self.members[member.name], self.parsers[member.name] = member, subparser

    def handle(self, *args: Any, subcommand: str, **options: Any) -> str | None:
        self.subcommand = subcommand
        for name, value in options.items():
            if isinstance(value, str | list) and not name.startswith("object"):
                require_storable(name.removeprefix("filter_"), value)
        try:
            return self.members[subcommand].handle(**options)
        except (APIException, ConcurrentTransition, TransitionNotAllowed) as problem:
            status, message = describe_error(problem) or (0, str(problem))
            raise (Conflict if status == Conflict.status else Invalid)(message) from problem

    def event(self) -> str:
        return f"{super().event()}.{self.subcommand}"


def add_inherited(parser: CommandParser) -> None:
    """Accept options of all commands after the subcommand, too."""
    parser.add_argument("--traceback", action="store_true", default=SUPPRESS, help=SUPPRESS)
    parser.add_argument("--no-color", action="store_true", default=SUPPRESS, help="print without colours")


def add_confirmation(parser: CommandParser) -> None:
    parser.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")


def require_confirmation(question: str, confirmed: bool) -> None:
    """Ask the user to confirm, unless an option has confirmed it.

    Raises:
        commands.NotConfirmed: the answer is no.
        Invalid: standard input is not a terminal.
    """
    if confirmed:
        return
    if not sys.stdin.isatty():
        raise Invalid("--yes is required, as there is no terminal to ask for confirmation.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise commands.NotConfirmed("Not confirmed: nothing was changed.")


def read_limit_option(text: str) -> int:
    """Parse a positive integer. Raises: `ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and int(text[:18]) > 0):
        raise ArgumentTypeError(f"must be a whole number from 1, not {text!r}")
    return int(text[:18])
