"""``manage.py remove_subscription``: delete a subscription."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications.subscriptions import find_subscription, unsubscribe
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Delete a subscription and its undelivered notifications."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        unsubscribe(find_subscription(options["name"]))
