"""``manage.py continue_plan``: propose a plan of the actions that did not succeed in a plan."""

from typing import Any
from uuid import UUID

from django.core.management import CommandParser

from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Propose a plan of the failed and cancelled actions of a FAILED or CANCELLED plan, and print its UUID."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("plan", type=UUID, help="the UUID of the plan that ended")

    def handle(self, *args: Any, plan: UUID, **options: Any) -> str:
        return str(continue_plan(ActionPlan.objects.find(plan)).uuid)
