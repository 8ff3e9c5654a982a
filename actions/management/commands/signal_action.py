"""``manage.py signal_action``: tell an action to end, to wait, or to go on."""

from typing import Any

from django.core.management import CommandParser

from actions.models import Action
from actions.operations.signals import signal_action
from watcher_site.processes import commands
from watcher_site.refusals import NotFound


class Command(commands.Command):
    help = "Give an action a signal: CANCEL, SUSPEND or RESUME; and print its state and what it has not honoured yet."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", help="its UUID, its name, or the beginning of its UUID")
        parser.add_argument("signal", choices=Action.Signal.values)
        commands.add_person(parser)

    def handle(self, *args: Any, action: str, signal: str, person: str, **options: Any) -> str:
        uuid = Action.objects.present().identified_by(action)
        if uuid is None:
            raise NotFound(f"action: there is no action {action}.")
        found = signal_action(uuid, Action.Signal(signal), person)
        return f"{found.state}, {found.control} pending" if found.control else str(found.state)
