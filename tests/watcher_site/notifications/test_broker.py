"""Notifications through RabbitMQ to the listener of oslo.messaging."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from pytest_django import Settings

from tests.broker import BrokerProxy
from tests.waiting import wait_for
from tests.watcher_site.notifications.listener import TRANSPORT_URL, Endpoint, listening
from tests.watcher_site.notifications.relaying import delivery_states, notify, relay
from watcher_site.models import Notification, Service
from watcher_site.notifications.broker_state import broker_state
from watcher_site.notifications.rabbitmq.receiver import BrokerReceiver
from watcher_site.notifications.receivers import Unreachable

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql, pytest.mark.rabbitmq]


@pytest.fixture
def heard(settings: Settings) -> Iterator[Endpoint]:
    settings.POLL_INTERVAL = 0
    settings.NOTIFICATION_URL = TRANSPORT_URL
    with listening() as (topic, endpoint):
        settings.NOTIFICATION_TOPICS = [topic]
        yield endpoint


def test_oslo_messaging_listener_receives_notifications_in_order_and_by_priority(heard: Endpoint) -> None:
    of = uuid4()
    notify(of, "action.execution.error")
    Notification.objects.update(priority="ERROR")
    notify(of, number=20)
    relay()
    wait_for(lambda: len(heard.heard["info"]) == 20 and heard.heard["error"])
    messages = [payload["watcher_object.data"]["status_message"] for _, _, payload, _ in heard.heard["info"]]
    assert messages == [f"number {place}" for place in range(20)]
    publisher, event, payload, metadata = heard.heard["error"][0]
    assert (publisher, event) == ("infra-optim:ctrl-1", "action.execution.error")
    assert payload["watcher_object.name"] == "ActionExecutionPayload"
    assert payload["watcher_object.version"] == "1.1"
    assert metadata["message_id"] == str(Notification.objects.get(priority="ERROR").uuid)
    assert delivery_states() == []


def test_oslo_messaging_listener_receives_the_id_of_the_request_as_the_context(heard: Endpoint) -> None:
    notify()
    Notification.objects.update(request_id="req-1")
    relay()
    wait_for(lambda: heard.contexts)
    assert heard.contexts[0].get("request_id") == "req-1"


def test_notifications_wait_during_a_broker_outage(heard: Endpoint, settings: Settings) -> None:
    proxy = BrokerProxy()
    settings.NOTIFICATION_URL = proxy.url.replace("amqp://", "rabbit://").removesuffix("/")
    receiver = BrokerReceiver()
    (first,) = notify(event_type="action.execution.start")
    receiver.send(first)
    proxy.cut()
    with pytest.raises(Unreachable):
        receiver.send(first)
    relay(until_idle=False)
    assert delivery_states() == [("PENDING", 0)]
    Service.register(Service.RELAY, "ctrl-1")
    assert broker_state().problem == "The broker does not answer."
    proxy.restore()
    receiver.send(first)
    wait_for(lambda: len(heard.heard["info"]) == 2)
    receiver.close()
    relay()
    wait_for(lambda: len(heard.heard["info"]) == 3)
    assert delivery_states() == []
