"""``manage.py schedule_plan``: say when a plan is to begin, and perhaps start it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.core.management import CommandParser

from plans.models import ActionPlan
from plans.planning.scheduling import schedule
from watcher_site.processes import commands
from watcher_site.refusals import Conflict, Invalid
from watcher_site.state_machine import TransitionNotAllowed
from watcher_site.windows.maintenance import WEEKDAYS
from watcher_site.windows.wall_clock import WINDOW, read_names

# What was said by which option.
OPTIONS = {
    "start_at": "--at",
    "zone": "--zone",
    **{f"window.{name}": f"--{name.replace('_', '-')}" for name in WINDOW},
}


class Command(commands.Command):
    help = "Say when a plan begins: at a time, within a maintenance window, or both. What is not named stays as it is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("plan", type=UUID, help="the UUID of the plan")
        add_hours(parser)
        parser.add_argument("--start", action="store_true", help="hand the plan to the appliers as well")
        commands.add_person(parser)

    def handle(self, *args: Any, plan: UUID, start: bool, person: str, **options: Any) -> str:
        try:
            with refusals_by_option():
                scheduled = schedule(ActionPlan.objects.find(plan), wishes_of(options), start, commands.caller(person))
        except TransitionNotAllowed as problem:
            raise Conflict(f"plan: {plan} is not RECOMMENDED, so that it cannot be started.") from problem
        return outcome(scheduled)


def add_hours(parser: CommandParser) -> None:
    """Accept the time and the maintenance window of a plan."""
    parser.add_argument("--at", help="such as 2030-01-31T22:00, by the clock of the zone; none takes it back")
    parser.add_argument("--zone", help="a time zone, such as Europe/Berlin")
    parser.add_argument("--opens", help="when the window opens, such as 22:00, by the clock of the zone")
    parser.add_argument("--closes", help="when it closes, such as 04:00; on the next day, where it is not later")
    parser.add_argument("--weekdays", type=read_names, help=f"on which it opens: {','.join(WEEKDAYS)}")
    parser.add_argument("--first-day", help="on which it may open, such as 2030-01-31")
    parser.add_argument("--last-day", help="on which it may open")
    parser.add_argument("--no-window", action="store_true", help="take the window back")


@contextmanager
def refusals_by_option() -> Iterator[None]:
    """Name the option, in place of the field of the API, in the message of a refusal."""
    try:
        yield
    except (Invalid, Conflict) as refusal:
        raise type(refusal)(by_option(str(refusal))) from refusal


def wishes_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options as the API has them.

    Raises:
        Invalid: they contradict each other.
    """
    wishes: dict[str, Any] = {}
    if options["at"]:
        wishes["start_at"] = None if options["at"] == "none" else options["at"]
    if options["zone"]:
        wishes["zone"] = options["zone"]
    window = {name: options[name] for name in WINDOW if options[name] is not None}
    if window and options["no_window"]:
        raise Invalid("--no-window: leaves no window to open or to close.")
    if window or options["no_window"]:
        wishes["window"] = window or None
    return wishes


def by_option(refusal: str) -> str:
    """Return a refusal that begins with a field of the API as one that begins with the option that it came from."""
    field, colon, words = refusal.partition(": ")
    option = OPTIONS.get(field)
    return f"{option}{colon}{words}" if option else refusal


def outcome(plan: ActionPlan) -> str:
    begins = f"from {plan.opens_at:%Y-%m-%d %H:%M} UTC on" if plan.opens_at else "at any time"
    until = f", until {plan.closes_at:%Y-%m-%d %H:%M} UTC" if plan.closes_at else ""
    return f"The action plan is {plan.state} and may begin {begins}{until}."
