"""``manage.py enable_exclusion``: enable a disabled rule."""

from typing import Any

from django.core.management import CommandParser

from actions.exclusions.records import change_exclusion, find_exclusion
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Enable a disabled exclusion. Actions that began in the meantime are not stopped."
    enabled = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("exclusion", help="the UUID or name of the exclusion")
        commands.add_person(parser)

    def handle(self, *args: Any, exclusion: str, person: str, **options: Any) -> str:
        changed = change_exclusion(find_exclusion(exclusion), {"enabled": self.enabled}, person)
        return f"Exclusion {changed} is {'enabled' if changed.enabled else 'disabled'}."
