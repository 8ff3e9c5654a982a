"""``manage.py remove_exclusion``: delete a rule."""

from typing import Any

from django.core.management import CommandParser

from actions.exclusions.records import delete_exclusion, find_exclusion
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Delete an exclusion. Actions that it skipped stay skipped, and can be restored until their plan begins."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("exclusion", help="the UUID or name of the exclusion")
        commands.add_person(parser)

    def handle(self, *args: Any, exclusion: str, **options: Any) -> str:
        record = find_exclusion(exclusion)
        delete_exclusion(record)
        return f"Deleted exclusion {record}."
