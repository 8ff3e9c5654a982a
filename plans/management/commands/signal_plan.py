"""``manage.py signal_plan``: send a signal to a plan."""

from typing import Any
from uuid import UUID

from django.core.management import CommandParser

from actions.models import Action
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Send a signal to a plan: CANCEL, SUSPEND or RESUME. Prints its state."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("plan", type=UUID, help="the UUID of the plan")
        parser.add_argument("signal", choices=Action.Signal.values)
        commands.add_person(parser)

    def handle(self, *args: Any, plan: UUID, signal: str, person: str, **options: Any) -> str:
        signal_plan(ActionPlan.objects.find(plan), Action.Signal(signal), person)
        current = ActionPlan.objects.find(plan)
        return f"{current.state}, suspended" if current.is_suspended else str(current.state)
