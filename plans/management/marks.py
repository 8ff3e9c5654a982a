"""Subcommands that mark servers, nodes and stacks as unhealthy, and that remove the marks."""

from typing import Any

from django.core.management import CommandParser

from cluster.operations.marks import Mark
from plans.management.commands.mark_unhealthy import describe_mark
from plans.operations.marks import mark
from watcher_site.processes import commands
from watcher_site.terminal.groups import Operation


class SetMark(Operation):
    name = "mark"
    help = "Mark it as unhealthy, so that it is recovered or replaced."
    found: Mark

    def add_options(self, parser: CommandParser) -> None:
        parser.add_argument("--reason", default="", help="the reason, which others see")

    def apply(self, record: Any, **options: Any) -> None:
        self.found = mark(record, True, options["reason"], commands.caller(options["person"]))

    def outcome(self, record: Any) -> str:
        return describe_mark(self.found)


class ClearMark(SetMark):
    name, help = "unmark", "Remove the mark as unhealthy."

    def add_options(self, parser: CommandParser) -> None:
        """Add no options: the removal of a mark has no reason."""

    def apply(self, record: Any, **options: Any) -> None:
        self.found = mark(record, False, "", commands.caller(options["person"]))
