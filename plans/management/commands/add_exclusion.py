"""``manage.py add_exclusion``: keep actions from being executed, or see what a rule would keep from it."""

from typing import Any
from uuid import UUID

from django.core.management import CommandParser

from actions.exclusions.records import create_exclusion, draft_exclusion
from actions.exclusions.targets import KINDS
from plans.models import ActionPlan
from plans.operations.exclusion_trials import describe_trial, try_rule
from watcher_site.processes import commands
from watcher_site.refusals import Refused
from watcher_site.windows.maintenance import WEEKDAYS
from watcher_site.windows.wall_clock import WINDOW, read_names

# What was said by which option.
OPTIONS = {
    "action_types": "--type",
    "expires_at": "--expires",
    **{f"targets.{kind}": f"--{singular.replace(' ', '-')}" for kind, (singular, _) in KINDS.items()},
    **{f"window.{name}": f"--{name.replace('_', '-')}" for name in WINDOW},
    **{name: f"--{name}" for name in ("reason", "owner", "zone")},
}


class Command(commands.Command):
    help = (
        "Keep actions from being executed, in every plan: they are skipped, and name the exclusion. That is an action "
        "of one of the types that affects one object of each kind: these options may be given several times."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="what the exclusion is called")
        parser.add_argument("--reason", help="why; the actions that are skipped tell it")
        parser.add_argument("--owner", help="who answers for it (you)")
        parser.add_argument("--type", action="append", dest="action_types", help="a type of actions, such as migrate")
        for kind, (singular, form) in KINDS.items():
            parser.add_argument(f"--{singular.replace(' ', '-')}", action="append", dest=kind, help=form)
        parser.add_argument("--zone", help="a time zone, such as Europe/Berlin, of the times that follow (UTC)")
        parser.add_argument("--opens", help="from which hour on it is in force, such as 08:00; always, if left out")
        parser.add_argument("--closes", help="until which hour; on the next day, where it is not later")
        parser.add_argument("--weekdays", type=read_names, help=f"on which it begins: {','.join(WEEKDAYS)}")
        parser.add_argument("--first-day", help="on which it may begin, such as 2030-01-31")
        parser.add_argument("--last-day", help="on which it may begin")
        parser.add_argument("--expires", dest="expires_at", help="when it expires, such as 2030-01-31T22:00")
        parser.add_argument("--try", dest="plan", type=UUID, help="only tell what it would exclude of this plan")
        commands.add_person(parser)

    def handle(self, *args: Any, plan: UUID | None, person: str, **options: Any) -> str:
        attributes = attributes_of(options)
        try:
            if plan is not None:
                return describe_trial(try_rule(draft_exclusion(attributes, person), ActionPlan.objects.find(plan)))
            return str(create_exclusion(attributes, person).uuid)
        except Refused as refusal:
            raise type(refusal)(by_option(str(refusal))) from refusal


def attributes_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as the API has them."""
    given = {name: value for name, value in options.items() if value is not None}
    said = ("name", "reason", "owner", "action_types", "zone", "expires_at")
    attributes = {name: given[name] for name in said if name in given}
    attributes["targets"] = {kind: given[kind] for kind in KINDS if kind in given}
    if window := {name: given[name] for name in WINDOW if name in given}:
        attributes["window"] = window
    return attributes


def by_option(refusal: str) -> str:
    """Return a refusal that begins with a field of the API as one that begins with the option that it came from."""
    field, colon, words = refusal.partition(": ")
    option = OPTIONS.get(field)
    return f"{option}{colon}{words}" if option else refusal
