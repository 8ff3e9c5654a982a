"""``manage.py add_exclusion``: create an exclusion, or test it on a plan."""

from typing import Any

from django.core.management import CommandParser

from actions.exclusions.records import create_exclusion, draft_exclusion
from actions.exclusions.targets import KINDS
from plans.management.arguments import find_plan
from plans.operations.exclusion_trials import describe_trial, try_rule
from watcher_site.processes import commands
from watcher_site.refusals import Refused
from watcher_site.windows.maintenance import WEEKDAYS
from watcher_site.windows.wall_clock import WINDOW, read_names

# The options by the fields of the API.
OPTIONS = {
    "action_types": "--type",
    "expires_at": "--expires",
    **{f"targets.{kind}": f"--{singular.replace(' ', '-')}" for kind, (singular, _) in KINDS.items()},
    **{f"window.{name}": f"--{name.replace('_', '-')}" for name in WINDOW},
    **{name: f"--{name}" for name in ("reason", "owner", "zone")},
}


class Command(commands.Command):
    help = (
        "Create an exclusion, which skips matching actions in every plan: actions of one of the types that affect one "
        "object of each kind. The options for types and objects may be repeated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the name of the exclusion")
        parser.add_argument("--reason", help="the reason, which skipped actions show")
        parser.add_argument("--owner", help="the responsible person or team (default: you)")
        parser.add_argument("--type", action="append", dest="action_types", help="an action type, such as migrate")
        for kind, (singular, form) in KINDS.items():
            parser.add_argument(f"--{singular.replace(' ', '-')}", action="append", dest=kind, help=form)
        parser.add_argument("--zone", help="the time zone of the times, such as Europe/Berlin (default: UTC)")
        parser.add_argument("--opens", help="the start of its daily hours, such as 08:00 (default: all hours)")
        parser.add_argument("--closes", help="their end; on the next day if not later than --opens")
        parser.add_argument(
            "--weekdays", type=read_names, help=f"the days on which the hours begin: {','.join(WEEKDAYS)}"
        )
        parser.add_argument("--first-day", help="the first day, such as 2030-01-31")
        parser.add_argument("--last-day", help="the last day")
        parser.add_argument("--expires", dest="expires_at", help="the time of expiry, such as 2030-01-31T22:00")
        parser.add_argument("--try", dest="plan", help="only show the actions of this plan that it would exclude")
        commands.add_person(parser)

    def handle(self, *args: Any, plan: str | None, person: str, **options: Any) -> str:
        attributes = attributes_of(options)
        try:
            if plan is not None:
                return describe_trial(try_rule(draft_exclusion(attributes, person), find_plan(plan)))
            return str(create_exclusion(attributes, person).uuid)
        except Refused as refusal:
            raise type(refusal)(by_option(str(refusal))) from refusal


def attributes_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options in the format of the API."""
    given = {name: value for name, value in options.items() if value is not None}
    names = ("name", "reason", "owner", "action_types", "zone", "expires_at")
    attributes = {name: given[name] for name in names if name in given}
    attributes["targets"] = {kind: given[kind] for kind in KINDS if kind in given}
    if window := {name: given[name] for name in WINDOW if name in given}:
        attributes["window"] = window
    return attributes


def by_option(refusal: str) -> str:
    """Return a refusal with the name of the option instead of the field of the API that it begins with."""
    field, colon, text = refusal.partition(": ")
    option = OPTIONS.get(field)
    return f"{option}{colon}{text}" if option else refusal
