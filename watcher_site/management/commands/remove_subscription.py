"""``manage.py remove_subscription``: have no more notifications sent to a receiver."""

from typing import Any

from django.core.management.base import CommandParser

from watcher_site import commands
from watcher_site.models import Subscription
from watcher_site.notifications.subscriptions import unsubscribe
from watcher_site.refusals import Invalid


class Command(commands.Command):
    help = "Delete a subscription, with what was not yet delivered to it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        commands.add_person(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        found = Subscription.objects.present().filter(name=options["name"]).first()
        if found is None:
            raise Invalid(f"name: there is no subscription {options['name']}.")
        unsubscribe(found)
