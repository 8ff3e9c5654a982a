"""``manage.py load_demonstration``: load the demonstration, a small cloud with a recommended plan."""

from typing import Any

from django.core.management import CommandParser

from audits.demonstration import load_demonstration, load_demonstration_again
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Fill an empty embedded cloud with a demonstration: compute nodes, servers, and a recommended plan."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--again", action="store_true", help="restore the initial state of the demonstration, with a new plan"
        )

    def handle(self, *args: Any, again: bool, **options: Any) -> None:
        plan = load_demonstration_again() if again else load_demonstration()
        if plan is None:
            self.stdout.write("The cloud was filled before: nothing was changed.")
        else:
            self.stdout.write(f"Loaded the demonstration cloud. Action plan {plan.uuid} is RECOMMENDED.")
