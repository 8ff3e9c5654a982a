"""``manage.py list_subscriptions``: print the subscriptions and the state of their deliveries."""

from typing import Any

from django.db.models import Count, Q

from watcher_site.models import Delivery, Subscription
from watcher_site.processes import commands

State = Delivery.State


def describe(subscription: Subscription) -> str:
    """Return the URL of a webhook, or the kind with the addresses or the host of the URL."""
    receiver = ",".join(subscription.addresses or ()) or subscription.url
    return receiver if subscription.kind == Subscription.Kind.WEBHOOK else f"{subscription.kind} {receiver}"


class Command(commands.Command):
    help = (
        "Print each subscription with its state, URL or addresses, events, and numbers of pending and undelivered"
        " notifications."
    )
    acts_for_person = False

    def handle(self, *args: Any, **options: Any) -> None:
        counts = {state: Count("deliveries", filter=Q(deliveries__state=state)) for state in State.values}
        for one in Subscription.objects.present().annotate(**counts).order_by("name"):
            switch = "enabled" if one.enabled else "disabled"
            numbers = f"{getattr(one, State.PENDING)} waiting, {getattr(one, State.UNDELIVERED)} undelivered"
            self.stdout.write(f"{one.name}  {switch}  {describe(one)}  {' '.join(one.event_types)}  {numbers}")
