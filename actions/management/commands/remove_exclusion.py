"""``manage.py remove_exclusion``: have a rule exclude nothing any more."""

from typing import Any

from django.core.management import CommandParser

from actions.exclusions.records import delete_exclusion, find_exclusion
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Delete an exclusion. What it skipped stays skipped, and can be restored while its plan has not begun."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("exclusion", help="its UUID or its name")
        commands.add_person(parser)

    def handle(self, *args: Any, exclusion: str, **options: Any) -> str:
        found = find_exclusion(exclusion)
        delete_exclusion(found)
        return f"Deleted exclusion {found}."
