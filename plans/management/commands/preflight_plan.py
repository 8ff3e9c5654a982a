"""``manage.py preflight_plan``: predict which actions of a plan would be skipped or fail now."""

import sys
from typing import Any

from django.core.management import CommandParser

from plans.management.arguments import add_plan, find_plan
from plans.models.preflight_results import PreflightResult
from plans.preflight import UNKNOWN, Preflight, Prospect, preflight
from watcher_site.console.naming import name_objects_plainly
from watcher_site.processes import commands

NOT_ALL_SUCCEED, NOT_ALL_FORESEEN = 1, 3
UNREAD = "The cloud was never read: run manage.py sync_cluster."


class Command(commands.Command):
    help = (
        "Show which actions of a plan would be skipped or fail if it began now, without executing any. Exit status: "
        "0: all would succeed, 1: an action would not succeed, 3: not all outcomes can be predicted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_plan(parser)

    def handle(self, *args: Any, plan: str, **options: Any) -> None:
        found = preflight(find_plan(plan))
        for prospect in found.unsuccessful:
            self.stdout.write(line(prospect))
        self.stdout.write(summary(found))
        if status := exit_status({str(prospect.outcome) for prospect in found.unsuccessful}):
            sys.exit(status)


def line(prospect: Prospect) -> str:
    action = prospect.action
    message = name_objects_plainly(prospect.predicted_message, action.known_names)
    return f"{prospect.outcome:<9}  {action.uuid}  {action.called}  {message}".rstrip()


def summary(found: Preflight | PreflightResult) -> str:
    counts = ", ".join(f"{count} {outcome}" for outcome, count in found.counts.items() if count)
    ended = sum(found.ended.values())
    parts = [f"Foreseen: {counts or 'nothing'}."]
    if ended:
        parts.append(f"Ended already: {ended}.")
    if found.is_mirrored:
        parts.append(f"The cloud as it was read {found.read_at:%Y-%m-%d %H:%M:%S} UTC." if found.read_at else UNREAD)
    return " ".join(parts)


def exit_status(outcomes: set[str]) -> int:
    """Return the exit status for the outcomes of the actions that would not succeed."""
    if outcomes - {UNKNOWN}:
        return NOT_ALL_SUCCEED
    return NOT_ALL_FORESEEN if outcomes else 0
