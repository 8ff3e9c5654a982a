"""``manage.py audits``: list, show, create, cancel, suspend, resume and trigger audits."""

from pathlib import Path
from typing import Any

import orjson
from django.core.management import CommandParser
from django.db.models import QuerySet

from actions.api.actions import known
from audits.api.audits import AuditView
from audits.models import NAME_LENGTH, Audit, AuditTemplate, Goal, Strategy
from audits.operations.changes import change_audit, trigger_audit
from audits.operations.creation import create_audit
from watcher_site.processes import commands
from watcher_site.refusals import Conflict, Invalid, WrongState
from watcher_site.terminal.groups import CommandGroup, ListObjects, Operation, ShowObject, Subcommand
from watcher_site.terminal.resources import Resource, find_record

State = Audit.State


class AuditListing(AuditView):
    """The list of the API, with a filter by state."""

    filters = ["state", *AuditView.filters]
    repeatable = frozenset({"state"})
    filter_schemas = {"state": {"enum": State.values}}

    def filter_state(self, queryset: QuerySet[Any], values: list[str]) -> QuerySet[Any]:
        return queryset.filter(state__in=known("state", [value.upper() for value in values], State.values))


class Create(Subcommand):
    name = "create"
    help = (
        "Create an audit, and print its UUID. A decision engine runs it: `audits show` shows its state, and "
        "`plans list --audit` its action plans."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--goal", help="the name of the goal").completer = names_of(Goal)  # type: ignore[attr-defined]
        parser.add_argument("--strategy", help="the name of the strategy").completer = names_of(  # type: ignore[attr-defined]
            Strategy
        )
        parser.add_argument(
            "--template", help="an audit template instead of a goal: its name, UUID or short UUID"
        ).completer = names_of(AuditTemplate)  # type: ignore[attr-defined]
        parser.add_argument("--name", help="the name of the audit (default: made from the strategy and the time)")
        parser.add_argument("--type", default=Audit.Type.ONESHOT, help=f"{', '.join(Audit.Type.values)} (%(default)s)")
        parser.add_argument("--interval", help="the interval of a CONTINUOUS audit: seconds, or a cron expression")
        parser.add_argument("--start-time", help="the start time of a CONTINUOUS audit, in ISO 8601")
        parser.add_argument("--end-time", help="the end time of a CONTINUOUS audit, in ISO 8601")
        parser.add_argument(
            "--parameter",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="a parameter of the strategy, in JSON or as text; may be repeated",
        )
        parser.add_argument("--scope", metavar="FILE", help="a JSON file with the scope")
        parser.add_argument("--auto-trigger", action="store_true", help="start its action plans without a review")
        parser.add_argument("--force", action="store_true", help="run the audit even if an action plan is ONGOING")
        self.add_format(parser, default=None)
        commands.add_person(parser)

    def handle(self, **options: Any) -> str | None:
        if options["name"] is not None and not options["name"].strip():
            raise Invalid("--name: must not be empty.")
        if options["name"] is not None and len(options["name"]) > NAME_LENGTH:
            raise Invalid(f"--name: must have at most {NAME_LENGTH} characters, and has {len(options['name'])}.")
        template = options["template"]
        if template is not None:
            template = find_record(AuditTemplate.objects.present(), "audit template", template, "name").uuid
        audit = create_audit(
            audit_type=options["type"].upper(),
            goal=options["goal"],
            audit_template_uuid=template and str(template),
            strategy=options["strategy"],
            name=options["name"],
            parameters=dict(map(read_parameter, options["parameter"])) or None,
            scope=read_scope(options["scope"]),
            interval=options["interval"],
            auto_trigger=options["auto_trigger"],
            force=options["force"],
            start_time=options["start_time"],
            end_time=options["end_time"],
        )
        if not options["format"]:
            return str(audit.uuid)
        self.print_object(audit, options)
        return None


def names_of(model: Any) -> Any:
    """Return a completer with the names of the objects of a model."""
    return lambda prefix, **_: list(
        model.objects.present().filter(name__startswith=prefix).values_list("name", flat=True)
    )


def read_parameter(text: str) -> tuple[str, Any]:
    """Return the name and the value of a parameter, which is JSON or text. Raises: `Invalid`."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise Invalid(f"--parameter: must be NAME=VALUE, not {text!r}.")
    try:
        return name, orjson.loads(value)
    except orjson.JSONDecodeError:
        return name, value


def read_scope(path: str | None) -> list[Any] | None:
    """Return the scope in a JSON file. Raises: `Invalid`."""
    if path is None:
        return None
    try:
        scope: list[Any] = orjson.loads(Path(path).read_bytes())
    except (OSError, orjson.JSONDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else f"it is not JSON: {problem}"
        raise Invalid(f"--scope: {path} cannot be read: {reason}.") from problem
    return scope


class AuditOperation(Operation):
    """A change of the state of an audit. ``participle`` is its description in refusals."""

    state: State
    participle: str

    def name_of(self, record: Any) -> str:
        return f"{record.uuid} ({record.name})"

    def apply(self, record: Audit, **options: Any) -> None:
        try:
            change_audit(record, [{"op": "replace", "path": "/state", "value": str(self.state)}])
        except WrongState as problem:
            kind = f"{record.audit_type} audit {self.name_of(record)}"
            raise Conflict(f"The {kind} is {record.state}, and cannot be {self.participle}.") from problem


class Cancel(AuditOperation):
    name, help = "cancel", "Cancel an audit."
    question = "Cancel the {title} {name}?"
    state = State.CANCELLED
    participle = "cancelled"


class Suspend(AuditOperation):
    name, help = "suspend", "Suspend a CONTINUOUS audit that has begun."
    state = State.SUSPENDED
    participle = "suspended"


class Resume(AuditOperation):
    name, help = "resume", "Resume a suspended audit."
    state = State.ONGOING
    participle = "resumed"


class Trigger(AuditOperation):
    name, help = "trigger", "Trigger a run of an EVENT audit."

    def apply(self, record: Audit, **options: Any) -> None:
        trigger_audit(record)


class Command(CommandGroup):
    help = "List, show, create, cancel, suspend, resume and trigger audits."
    resource = Resource(
        "audit",
        AuditListing,
        ("uuid", "name", "state", "audit_type", "goal_name", "strategy_name", "created_at", "status_message"),
    )
    subcommands = [ListObjects, ShowObject, Create, Suspend, Resume, Trigger, Cancel]
