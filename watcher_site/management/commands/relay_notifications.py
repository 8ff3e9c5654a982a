"""``manage.py relay_notifications``: send notifications to their receivers."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.monitoring.server import serve_metrics
from watcher_site.monitoring.tracing import tracing
from watcher_site.notifications.relay import Relay
from watcher_site.processes import commands
from watcher_site.processes.main_loop import main_loop


class Command(commands.Command):
    help = "Send notifications to the message broker and to webhooks, until SIGTERM or SIGINT."
    acts_for_person = False
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--once", action="store_true", help="send the notifications that are due, then exit")

    def handle(self, *args: Any, once: bool, **options: Any) -> None:
        serve_metrics(Relay.kind, main_loop.find_problem)
        tracing.start(Relay.kind)
        relay = Relay()
        relay.stop_on_signals()
        relay.run(once=once)
