"""``manage.py add_subscription``: send notifications to a URL."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications.subscriptions import subscribe
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Send notifications to a URL, and print the secret that signs them. The secret is printed only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("url")
        parser.add_argument(
            "--event-type", action="append", help="a pattern such as action.* or *.error; may be repeated"
        )
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        _, secret = subscribe(options["name"], options["url"], options["event_type"] or ["*"])
        return secret
