"""``manage.py enable_exclusion``: have a rule be heeded again that was disabled."""

from typing import Any

from django.core.management import CommandParser

from actions.exclusions.records import change_exclusion, find_exclusion
from watcher_site import commands


class Command(commands.Command):
    help = "Have an exclusion be heeded again. What has begun meanwhile is left to finish."
    enabled = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("exclusion", help="its UUID or its name")
        commands.add_person(parser)

    def handle(self, *args: Any, exclusion: str, person: str, **options: Any) -> str:
        changed = change_exclusion(find_exclusion(exclusion), {"enabled": self.enabled}, person)
        return f"Exclusion {changed} is {'enabled' if changed.enabled else 'disabled'}."
