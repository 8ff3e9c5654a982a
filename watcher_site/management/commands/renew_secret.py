"""``manage.py renew_secret``: replace the secret of a subscription."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications.subscriptions import find_subscription, renew_secret
from watcher_site.processes import commands


class Command(commands.Command):
    help = (
        "Replace the secret of a subscription, and print the new one, only once. It signs all further notifications."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the name or UUID of the subscription")
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        _, secret = renew_secret(find_subscription(options["name"]))
        return secret
