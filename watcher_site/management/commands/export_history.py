"""``manage.py export_history``: export history as CSV or JSON lines."""

from typing import Any

from django.core.management import CommandParser

from watcher_site.history.reading import FILTERS, FORMATS, lines_of, narrow
from watcher_site.models import HistoryEntry
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Write the history entries that match all options to the standard output, the oldest first."

    def add_arguments(self, parser: CommandParser) -> None:
        commands.add_person(parser)
        parser.add_argument("--format", default="csv", choices=list(FORMATS))
        for name in FILTERS:
            parser.add_argument(f"--{name.replace('_', '-')}", dest=name)

    def handle(self, *args: Any, **options: Any) -> None:
        given = {name: options[name] for name in FILTERS}
        filters = {name: value for name, value in given.items() if value}
        _, lines = lines_of(narrow(HistoryEntry.objects.all(), given), options["format"], filters)
        for line in lines:
            self.stdout.write(line.decode(), ending="")
