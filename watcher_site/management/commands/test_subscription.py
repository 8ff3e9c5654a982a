"""``manage.py test_subscription``: try whether a receiver hears."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications.subscriptions import find_subscription, send_test
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Have a relay send a test message to a receiver, and print the id that it comes with."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="of the subscription, or its UUID")
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        return str(send_test(find_subscription(options["name"])).uuid)
