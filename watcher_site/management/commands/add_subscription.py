"""``manage.py add_subscription``: send notifications to a URL, or by e-mail."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site.notifications.subscriptions import Kind, subscribe
from watcher_site.processes import commands
from watcher_site.refusals import Invalid


class Command(commands.Command):
    help = (
        "Send notifications to a URL, to addresses of e-mail, or to a chat. For a webhook, the secret that signs the"
        " notifications is printed, only once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "receivers", nargs="+", metavar="receiver", help="the URL, or the addresses of e-mail for --kind mail"
        )
        parser.add_argument(
            "--kind", choices=Kind.values, default=Kind.WEBHOOK, help="slack also fits chats such as Mattermost"
        )
        parser.add_argument(
            "--event-type", action="append", help="a pattern such as action.* or *.error; may be repeated"
        )
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> str:
        kind, receivers = options["kind"], options["receivers"]
        if kind != Kind.MAIL and len(receivers) > 1:
            raise Invalid("receiver: only a subscription of the kind mail has several.")
        target = {"addresses": receivers} if kind == Kind.MAIL else {"url": receivers[0]}
        _, secret = subscribe(options["name"], event_types=options["event_type"] or ["*"], kind=kind, **target)
        return secret or ""
