"""The argument of commands that names a plan."""

from django.core.management import CommandParser

from plans.models import ActionPlan
from watcher_site.terminal.resources import find_record


def add_plan(parser: CommandParser) -> None:
    parser.add_argument("plan", metavar="PLAN", help="the UUID of the plan, or the beginning of its UUID")


def find_plan(identifier: str) -> ActionPlan:
    """Return the plan with a UUID, or with the beginning of a UUID. Raises: `Invalid`, `NotFound`."""
    plan: ActionPlan = find_record(ActionPlan.objects.present(), "action plan", str(identifier), None)
    return plan
