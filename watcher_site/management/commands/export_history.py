"""``manage.py export_history``: who did what and when, as CSV or as JSON lines."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.history.reading import FILTERS, FORMATS, lines_of, narrow
from watcher_site.models import HistoryEntry
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Write history to the standard output, the oldest first; the options leave what meets all of them."

    def add_arguments(self, parser: CommandParser) -> None:
        commands.add_person(parser)
        parser.add_argument("--format", default="csv", choices=list(FORMATS))
        for name in FILTERS:
            parser.add_argument(f"--{name.replace('_', '-')}", dest=name)

    def handle(self, *args: Any, **options: Any) -> None:
        wishes = {name: options[name] for name in FILTERS}
        filters = {name: value for name, value in wishes.items() if value}
        _, lines = lines_of(narrow(HistoryEntry.objects.all(), wishes), options["format"], filters)
        for line in lines:
            self.stdout.write(line.decode(), ending="")
