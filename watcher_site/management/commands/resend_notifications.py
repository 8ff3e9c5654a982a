"""``manage.py resend_notifications``: send dead letters again."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications import deliveries
from watcher_site.notifications.subscriptions import find_subscription
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Send all dead letters, or those of one subscription, again, and print their number."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--subscription", metavar="NAME", help="the name or UUID of the subscription")
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        if options["subscription"] is None:
            return str(deliveries.resend_all())
        receiver = find_subscription(options["subscription"])
        return str(deliveries.resend_all(receiver.deliveries.all(), {"subscription": receiver.name}))
