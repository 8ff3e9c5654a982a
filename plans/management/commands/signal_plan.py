"""``manage.py signal_plan``: send a signal to a plan."""

from typing import Any

from django.core.management import CommandParser

from actions.models import Action
from plans.management.arguments import add_plan, find_plan
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Send a signal to a plan: CANCEL, SUSPEND or RESUME. Prints its state."

    def add_arguments(self, parser: CommandParser) -> None:
        add_plan(parser)
        parser.add_argument("signal", choices=Action.Signal.values)
        commands.add_person(parser)

    def handle(self, *args: Any, plan: str, signal: str, person: str, **options: Any) -> str:
        found = find_plan(plan)
        signal_plan(found, Action.Signal(signal), person)
        current = ActionPlan.objects.reread(found)
        return f"{current.state}, suspended" if current.is_suspended else str(current.state)
