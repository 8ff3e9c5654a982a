"""``manage.py try_exclusion``: tell what an exclusion keeps from being executed of a plan."""

from typing import Any
from uuid import UUID

from django.core.management import CommandParser

from actions.exclusions.records import find_exclusion
from plans.models import ActionPlan
from plans.operations.exclusion_trials import describe_trial, try_rule
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Tell which actions of a plan an exclusion excludes, and why; add_exclusion --try does so for a new one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("exclusion", help="its UUID or its name")
        parser.add_argument("plan", type=UUID, help="the UUID of the plan")

    def handle(self, *args: Any, exclusion: str, plan: UUID, **options: Any) -> str:
        return describe_trial(try_rule(find_exclusion(exclusion), ActionPlan.objects.find(plan)))
