"""``manage.py schedule_plan``: set the schedule of a plan, and optionally start it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import CommandParser

from plans.management.arguments import add_plan, find_plan
from plans.models import ActionPlan
from plans.planning.scheduling import schedule
from watcher_site.processes import commands
from watcher_site.refusals import Conflict, Invalid
from watcher_site.state_machine import TransitionNotAllowed
from watcher_site.windows.maintenance import WEEKDAYS
from watcher_site.windows.wall_clock import WINDOW, read_names

# The options by the fields of the API.
OPTIONS = {
    "start_at": "--at",
    "zone": "--zone",
    **{f"window.{name}": f"--{name.replace('_', '-')}" for name in WINDOW},
}


class Command(commands.Command):
    help = "Set the start time, the maintenance window or both of a plan. Omitted values do not change."

    def add_arguments(self, parser: CommandParser) -> None:
        add_plan(parser)
        add_hours(parser)
        parser.add_argument("--start", action="store_true", help="also start the plan")
        commands.add_person(parser)

    def handle(self, *args: Any, plan: str, start: bool, person: str, **options: Any) -> str:
        try:
            with refusals_by_option():
                scheduled = schedule(find_plan(plan), schedule_changes(options), start, commands.caller(person))
        except TransitionNotAllowed as problem:
            raise Conflict(f"plan: {plan} is not RECOMMENDED, so it cannot be started.") from problem
        return outcome(scheduled)


def add_hours(parser: CommandParser) -> None:
    """Add the options for the start time and the maintenance window of a plan."""
    parser.add_argument("--at", help="the start time, such as 2030-01-31T22:00, in the time zone; none removes it")
    parser.add_argument("--zone", help="the time zone, such as Europe/Berlin")
    parser.add_argument("--opens", help="the start of the window, such as 22:00, in the time zone")
    parser.add_argument("--closes", help="its end, such as 04:00; on the next day if not later than --opens")
    parser.add_argument("--weekdays", type=read_names, help=f"the days on which it opens: {','.join(WEEKDAYS)}")
    parser.add_argument("--first-day", help="the first day on which it opens, such as 2030-01-31")
    parser.add_argument("--last-day", help="the last day on which it opens")
    parser.add_argument("--no-window", action="store_true", help="remove the window")


@contextmanager
def refusals_by_option() -> Iterator[None]:
    """Replace the field of the API by the option in the messages of refusals."""
    try:
        yield
    except (Invalid, Conflict) as refusal:
        raise type(refusal)(by_option(str(refusal))) from refusal


def schedule_changes(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options in the format of the API.

    Raises:
        Invalid: the options contradict each other.
    """
    changes: dict[str, Any] = {}
    if options["at"]:
        changes["start_at"] = None if options["at"] == "none" else options["at"]
    if options["zone"]:
        changes["zone"] = options["zone"]
    window = {name: options[name] for name in WINDOW if options[name] is not None}
    if window and options["no_window"]:
        raise Invalid("--no-window: leaves no window to open or to close.")
    if window or options["no_window"]:
        changes["window"] = window or None
    return changes


def by_option(refusal: str) -> str:
    """Return a refusal with the name of the option instead of the field of the API that it begins with."""
    field, colon, text = refusal.partition(": ")
    option = OPTIONS.get(field)
    return f"{option}{colon}{text}" if option else refusal


def outcome(plan: ActionPlan) -> str:
    begins = f"from {plan.opens_at:%Y-%m-%d %H:%M} UTC on" if plan.opens_at else "at any time"
    until = f", until {plan.closes_at:%Y-%m-%d %H:%M} UTC" if plan.closes_at else ""
    return f"The action plan is {plan.state} and may begin {begins}{until}."
