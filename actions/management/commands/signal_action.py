"""``manage.py signal_action``: send a signal to an action."""

from typing import Any

from django.core.management import CommandParser

from actions.models import Action
from actions.operations.signals import signal_action
from watcher_site.processes import commands
from watcher_site.refusals import NotFound


class Command(commands.Command):
    help = "Send CANCEL, SUSPEND or RESUME to an action, and print its state and its pending signal."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", help="the UUID of the action, its name, or a prefix of its UUID")
        parser.add_argument("signal", choices=Action.Signal.values)
        commands.add_person(parser)

    def handle(self, *args: Any, action: str, signal: str, person: str, **options: Any) -> str:
        uuid = Action.objects.present().identified_by(action)
        if uuid is None:
            raise NotFound(f"action: there is no action {action}.")
        row = signal_action(uuid, Action.Signal(signal), person)
        return f"{row.state}, {row.control} pending" if row.control else str(row.state)
