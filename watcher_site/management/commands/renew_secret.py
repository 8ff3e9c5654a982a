"""``manage.py renew_secret``: have notifications signed with another secret."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications.subscriptions import find_subscription, renew_secret
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Give a subscription another secret, and print it: this once. The former signs nothing any more."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="of the subscription, or its UUID")
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        _, secret = renew_secret(find_subscription(options["name"]))
        return secret
