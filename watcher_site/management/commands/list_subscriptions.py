"""``manage.py list_subscriptions``: print the subscriptions and the state of their deliveries."""

from typing import Any

from django.db.models import Count, Q

from watcher_site.models import Delivery, Subscription
from watcher_site.processes import commands

State = Delivery.State


class Command(commands.Command):
    help = "Print each subscription with its state, URL, events, and numbers of pending and undelivered notifications."
    acts_for_person = False

    def handle(self, *args: Any, **options: Any) -> None:
        counts = {state: Count("deliveries", filter=Q(deliveries__state=state)) for state in State.values}
        for one in Subscription.objects.present().annotate(**counts).order_by("name"):
            switch = "enabled" if one.enabled else "disabled"
            numbers = f"{getattr(one, State.PENDING)} waiting, {getattr(one, State.UNDELIVERED)} undelivered"
            self.stdout.write(f"{one.name}  {switch}  {one.url}  {' '.join(one.event_types)}  {numbers}")
