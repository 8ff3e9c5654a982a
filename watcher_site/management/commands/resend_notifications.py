"""``manage.py resend_notifications``: send again what was given up."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications import deliveries
from watcher_site.notifications.subscriptions import find_subscription
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Have notifications that were given up sent again, all or those to one receiver; print how many these are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--subscription", metavar="NAME", help="only what was to go to it; a name or a UUID")
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        if options["subscription"] is None:
            return str(deliveries.resend_all())
        receiver = find_subscription(options["subscription"])
        return str(deliveries.resend_all(receiver.deliveries.all(), {"subscription": receiver.name}))
