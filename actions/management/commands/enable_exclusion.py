"""``manage.py enable_exclusion``: put a disabled rule into force again."""

from typing import Any

from django.core.management import CommandParser

from actions.exclusions.records import change_exclusion, find_exclusion
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Put a disabled exclusion into force again. Actions that have begun meanwhile are not stopped."
    enabled = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("exclusion", help="its UUID or its name")
        commands.add_person(parser)

    def handle(self, *args: Any, exclusion: str, person: str, **options: Any) -> str:
        changed = change_exclusion(find_exclusion(exclusion), {"enabled": self.enabled}, person)
        return f"Exclusion {changed} is {'enabled' if changed.enabled else 'disabled'}."
