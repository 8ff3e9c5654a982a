"""``manage.py try_exclusion``: list the actions of a plan that an exclusion excludes."""

from typing import Any

from django.core.management import CommandParser

from actions.exclusions.records import find_exclusion
from plans.management.arguments import add_plan, find_plan
from plans.operations.exclusion_trials import describe_trial, try_rule
from watcher_site.processes import commands


class Command(commands.Command):
    help = "List the actions of a plan that an exclusion excludes. For a new exclusion, use add_exclusion --try."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("exclusion", help="the UUID or the name of the exclusion")
        add_plan(parser)

    def handle(self, *args: Any, exclusion: str, plan: str, **options: Any) -> str:
        return describe_trial(try_rule(find_exclusion(exclusion), find_plan(plan)))
