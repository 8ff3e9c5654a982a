"""Batches of messages to RabbitMQ: their format, refused and unconfirmed messages, and lost connections."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from kombu import Connection, Producer
from kombu.compression import decompress
from pytest_django import Settings

from tests.broker import BROKER_URL, BrokerProxy
from tests.watcher_site.notifications.listener import TRANSPORT_URL
from tests.watcher_site.notifications.relaying import delivery_states, notify, relay
from watcher_site.models import Delivery, Notification
from watcher_site.notifications.rabbitmq import publisher
from watcher_site.notifications.rabbitmq.connections import Confirms
from watcher_site.notifications.rabbitmq.publisher import default_queue
from watcher_site.notifications.rabbitmq.receiver import BrokerReceiver, DriverReceiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql, pytest.mark.rabbitmq]


class Queue:
    """The queue of the notifications, without a consumer."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.channel, self.name = connection.channel(), name

    def take(self) -> list[Any]:
        return list(iter(lambda: self.channel.basic_get(self.name, no_ack=True), None))

    def delete(self) -> None:
        self.channel.queue_delete(self.name)


@pytest.fixture
def queue(settings: Settings) -> Iterator[Queue]:
    settings.NOTIFICATION_URL = TRANSPORT_URL
    settings.NOTIFICATION_TOPICS = [f"watcher-test-{uuid4()}"]
    settings.WEBHOOK_PAUSE = settings.POLL_INTERVAL = 0
    settings.WEBHOOK_ATTEMPTS = 2
    with Connection(BROKER_URL) as connection:
        one = Queue(connection, f"{settings.NOTIFICATION_TOPICS[0]}.info")
        yield one
        one.delete()


def envelope(message: Any) -> dict[str, Any]:
    compression = message.headers.get("compression")
    found: dict[str, Any] = json.loads(decompress(message.body, compression) if compression else message.body)
    return found


def content(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(envelope(message)["oslo.message"])
    return found


@pytest.mark.parametrize("request_id", ["", "req-1"])
@pytest.mark.parametrize("options", ["", "?kombu_compression=gzip"])
def test_message_equals_the_message_of_oslo_messaging_except_for_its_unique_id(
    queue: Queue, settings: Settings, options: str, request_id: str
) -> None:
    settings.NOTIFICATION_URL = f"{TRANSPORT_URL}{options}"
    (notification,) = notify()
    notification.request_id = request_id
    for receiver in (DriverReceiver(), BrokerReceiver()):
        receiver.send(notification)
        receiver.close()
    theirs, ours = queue.take()
    inner = [content(theirs), content(ours)]
    assert {len(one.pop("_unique_id")) for one in inner} == {32}
    assert inner[0] == inner[1]
    assert ours.properties == theirs.properties
    assert (ours.content_type, ours.content_encoding) == (theirs.content_type, theirs.content_encoding)
    assert envelope(ours)["oslo.version"] == envelope(theirs)["oslo.version"]


def test_message_that_closes_the_channel_is_given_up_and_later_messages_are_delivered(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = uuid4()
    first, _ = notify(bad, number=2)
    notify(number=2)

    def forge(producer: Producer, body: bytes, queue: str, **options: Any) -> Any:
        # The broker closes the channel, as it does for a message that is too large.
        forged = {"user_id": "nobody"} if str(first.uuid).encode() in body else {}
        return publish(producer, body, queue, **options, **forged)

    publish = Producer.publish
    monkeypatch.setattr(Producer, "publish", forge)
    relay()
    received = [content(message)["payload"]["watcher_object.data"]["status_message"] for message in queue.take()]
    assert received == ["number 0", "number 1", "number 1"]
    assert delivery_states() == [("UNDELIVERED", 2)]
    assert Delivery.objects.get().problem == "The broker refused it."
    assert Delivery.objects.get().notification.object_uuid == bad


def test_message_refused_by_a_full_queue_is_given_up_after_its_attempts(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def small(*arguments: Any) -> Any:
        made = default_queue(*arguments)
        made.queue_arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        return made

    monkeypatch.setattr(publisher, "default_queue", small)
    for _ in range(3):
        notify()
    relay()
    assert delivery_states() == [("UNDELIVERED", 2)] * 2
    assert len(queue.take()) == 1


def test_message_that_cannot_be_serialized_is_given_up_without_the_rest_of_the_batch(queue: Queue) -> None:
    (strange,) = notify()
    notify()
    Notification.objects.filter(pk=strange.pk).update(kind="unknown")
    relay()
    assert len(queue.take()) == 1
    assert delivery_states() == [("UNDELIVERED", 2)]
    assert Delivery.objects.get().problem == "It could not be sent: KeyError."


def test_unavailable_broker_of_a_cluster_is_skipped(queue: Queue, settings: Settings) -> None:
    person = urlsplit(TRANSPORT_URL).netloc.rpartition("@")[0]
    settings.NOTIFICATION_URL = TRANSPORT_URL.replace("@", f"@127.0.0.1:1,{person}@")
    (notification,) = notify()
    receiver = BrokerReceiver()
    receiver.send(notification)
    receiver.close()
    assert len(queue.take()) == 1


def test_unconfirmed_messages_are_resent_in_order_after_a_lost_connection(
    queue: Queue, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, await_all = BrokerProxy(), Confirms.await_all
    settings.NOTIFICATION_URL = proxy.url.replace("amqp://", "rabbit://").removesuffix("/")
    cuts = [proxy.cut]

    def cut_once(confirms: Confirms, timeout: float) -> None:
        if cuts:
            cuts.pop()()
        await_all(confirms, timeout)

    monkeypatch.setattr(Confirms, "await_all", cut_once)
    objects = [uuid4(), uuid4()]
    for of in objects:
        notify(of, number=3)
    relay(until_idle=False)
    # The broker may have confirmed the first message of an object before.
    assert set(delivery_states()) == {("PENDING", 0)}
    proxy.restore()
    relay()
    assert delivery_states() == []
    received = [content(message)["message_id"] for message in queue.take()]
    for of in objects:
        own = [
            str(one)
            for one in Notification.objects.filter(object_uuid=of).order_by("pk").values_list("uuid", flat=True)
        ]
        assert list(dict.fromkeys(one for one in received if one in own)) == own


def test_deleted_queue_is_declared_again_without_lost_messages(queue: Queue) -> None:
    receiver = BrokerReceiver()
    (notification,) = notify()
    receiver.send(notification)
    queue.delete()
    assert receiver.send_batch([notification] * 3) == [None] * 3
    assert len(queue.take()) == 3
    receiver.close()


def test_connection_is_reused(queue: Queue) -> None:
    receiver = BrokerReceiver()
    (notification,) = notify()
    receiver.send(notification)
    kept = receiver.connection.connection
    receiver.send(notification)
    assert receiver.connection.connection is kept
    receiver.close()


def test_idle_connection_is_replaced_before_the_broker_closes_it(queue: Queue) -> None:
    receiver = BrokerReceiver()
    (notification,) = notify()
    receiver.send(notification)
    idle = receiver.connection.connection
    receiver.connection.used -= 31
    receiver.send(notification)
    assert receiver.connection.connection is not idle
    receiver.close()
