"""``manage.py test_subscription``: send a test message to a subscription."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications.subscriptions import find_subscription, send_test
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Send a test message to a subscription, and print the id of the message."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the name or UUID of the subscription")
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        return str(send_test(find_subscription(options["name"])).uuid)
