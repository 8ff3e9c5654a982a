"""``manage.py load_demonstration``: a small cloud with a plan on it."""

from typing import Any

from audits.demonstration import load_demonstration
from watcher_site import commands


class Command(commands.Command):
    help = "Fill an empty embedded cloud with a demonstration: compute nodes, servers, and a recommended plan."

    def handle(self, *args: Any, **options: Any) -> None:
        plan = load_demonstration()
        if plan is None:
            self.stdout.write("The cloud was filled before: nothing was changed.")
        else:
            self.stdout.write(f"A demonstration cloud is there, and action plan {plan.uuid} is recommended.")
