"""Real ``manage.py relay_notifications`` processes, which are killed while they send notifications."""

import random
from collections import defaultdict
from collections.abc import Callable
from uuid import uuid4

import pytest
from pytest_django import Settings

from tests.end_to_end.processes.test_applier_processes import end_leases
from tests.processes import Process, start_command, start_fresh_command
from tests.waiting import wait_for
from tests.watcher_site.notifications.listener import TRANSPORT_URL, Endpoint, listening
from tests.watcher_site.notifications.receiver import receiving
from tests.watcher_site.notifications.relaying import notify, numbers, subscribe_to
from watcher_site.models import Delivery, Service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.rabbitmq,
    pytest.mark.django_db(transaction=True),
]
KILLS, OBJECTS, EACH = 3, 20, 10


def start(topic: str, starter: Callable[..., Process] = start_command) -> Process:
    environment = {
        "WATCHER_POLL_INTERVAL": "0.05",
        "WATCHER_WEBHOOK_PRIVATE_ADDRESSES": "true",
        "WATCHER_NOTIFICATION_URL": TRANSPORT_URL,
        "WATCHER_NOTIFICATION_TOPICS": topic,
    }
    return starter("relay_notifications", **environment)


def message_ids_of_actions(endpoint: Endpoint) -> set[str]:
    """Return the ids of the messages about actions, without the notifications about successors of killed relays."""
    return {metadata["message_id"] for _, event, _, metadata in endpoint.heard["info"] if event != "service.update"}


def test_repeatedly_killed_relay_loses_no_event_and_keeps_the_order(settings: Settings) -> None:
    settings.NOTIFICATION_URL = TRANSPORT_URL
    objects = [uuid4() for _ in range(OBJECTS)]
    with receiving() as receiver, listening() as (topic, endpoint):
        subscribe_to(receiver.url, event_types=["action.*"])
        for of in objects:
            notify(of, number=EACH)
        for _ in range(KILLS):
            relay = start(topic)
            goal = len(receiver.events) + random.randint(1, OBJECTS * EACH // (2 * KILLS))  # noqa: S311
            wait_for(lambda goal=goal: len(receiver.events) >= goal)
            relay.kill()
            relay.wait()
            end_leases(list(Service.objects.values_list("pk", flat=True)))
        relay = start(topic, start_fresh_command)
        wait_for(lambda: not Delivery.objects.exists())
        relay.terminate()
        assert relay.wait(60) == 0
        wait_for(lambda: len(message_ids_of_actions(endpoint)) == OBJECTS * EACH)
    by_webhook: dict[str, list[int]] = defaultdict(list)
    for event in receiver.taken:
        by_webhook[event["subject"]] += numbers([event])
    # Events that were sent but not recorded when the relay was killed are sent twice, in the same order.
    assert [list(dict.fromkeys(by_webhook[str(of)])) for of in objects] == [list(range(EACH))] * OBJECTS
