"""``manage.py try_exclusion``: list the actions of a plan that an exclusion excludes."""

from typing import Any
from uuid import UUID

from django.core.management import CommandParser

from actions.exclusions.records import find_exclusion
from plans.models import ActionPlan
from plans.operations.exclusion_trials import describe_trial, try_rule
from watcher_site.processes import commands


class Command(commands.Command):
    help = "List the actions of a plan that an exclusion excludes. For a new exclusion, use add_exclusion --try."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("exclusion", help="the UUID or the name of the exclusion")
        parser.add_argument("plan", type=UUID, help="the UUID of the plan")

    def handle(self, *args: Any, exclusion: str, plan: UUID, **options: Any) -> str:
        return describe_trial(try_rule(find_exclusion(exclusion), ActionPlan.objects.find(plan)))
