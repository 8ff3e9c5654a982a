"""``manage.py continue_plan``: propose a plan of the actions that did not succeed in a plan."""

from typing import Any

from django.core.management import CommandParser

from plans.management.arguments import add_plan, find_plan
from plans.planning.continuation import continue_plan
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Propose a plan of the failed and cancelled actions of a FAILED or CANCELLED plan, and print its UUID."

    def add_arguments(self, parser: CommandParser) -> None:
        add_plan(parser)

    def handle(self, *args: Any, plan: str, **options: Any) -> str:
        return str(continue_plan(find_plan(plan)).uuid)
