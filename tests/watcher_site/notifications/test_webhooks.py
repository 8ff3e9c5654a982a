"""Webhooks of a relay with threads to an HTTP receiver: order, signatures, retries, dead letters and sharing."""

from collections.abc import Iterator
from datetime import timedelta
from threading import Thread
from threading import enumerate as enumerate_threads
from uuid import uuid4

import pytest
from django.db import OperationalError
from django.utils import timezone
from pytest_django import Settings
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from tests.waiting import wait_for
from tests.watcher_site.notifications.receiver import Receiver, receiving
from tests.watcher_site.notifications.relaying import delivery_states, notify, numbers, relay, subscribe_to
from watcher_site.models import Delivery, Notification, Service, Subscription
from watcher_site.notifications import deliveries
from watcher_site.notifications.relay import Relay, dispatch
from watcher_site.notifications.subscriptions import send_test
from watcher_site.notifications.webhooks import unseal_secret

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    settings.WEBHOOK_PAUSE = settings.POLL_INTERVAL = 0
    settings.WEBHOOK_TIMEOUT = 0.3
    settings.WEBHOOK_ATTEMPTS = 3
    with receiving() as one:
        yield one


def test_notifications_are_delivered_signed_and_in_order_for_each_object(receiver: Receiver) -> None:
    subscription = subscribe_to(receiver.url)
    first, second = uuid4(), uuid4()
    for of in (first, second):
        notify(of, number=3)
    relay()
    assert {of: numbers(one for one in receiver.taken if one["subject"] == str(of)) for of in (first, second)} == {
        first: [0, 1, 2],
        second: [0, 1, 2],
    }
    assert not Delivery.objects.exists()
    assert Notification.objects.settled().count() == 6
    assert Subscription.objects.get().last_success
    headers, body = receiver.requests[0]
    signature = Webhook(unseal_secret(subscription))
    event = signature.verify(body, headers)
    assert (event["specversion"], event["type"], event["source"]) == ("1.0", "action.update", "infra-optim:ctrl-1")
    assert event["id"] == headers["webhook-id"]
    assert headers["content-type"].startswith("application/cloudevents+json")
    with pytest.raises(WebhookVerificationError):
        signature.verify(body.replace(b"ONGOING", b"FAILED"), headers)


def test_request_has_the_id_of_the_request_that_caused_the_change(receiver: Receiver) -> None:
    subscribe_to(receiver.url)
    (caused,) = notify()
    Notification.objects.update(request_id="req-1")
    (other,) = notify()
    relay()
    sent = {headers["webhook-id"]: headers.get("x-openstack-request-id") for headers, _ in receiver.requests}
    assert sent == {str(caused.uuid): "req-1", str(other.uuid): None}


def test_log_line_about_a_notification_has_the_id_of_the_request(receiver: Receiver) -> None:
    subscribe_to(receiver.url)
    notify()
    Notification.objects.update(request_id="req-1")
    receiver.answer = lambda event: 400
    with capture_logs([merge_contextvars]) as lines:
        relay()
    assert [line["request_id"] for line in lines if line["event"] == "notification given up"] == ["req-1"]


def test_receiver_gets_only_subscribed_events_after_the_subscription(receiver: Receiver) -> None:
    notify(event_type="action.execution.error")
    subscribe_to(receiver.url, event_types=["*.error", "action_plan.*"])
    notify(event_type="action.execution.error")
    notify(event_type="action.update")
    relay()
    assert receiver.types() == ["action.execution.error"]


def test_refused_notification_is_retried_and_given_up_without_delaying_other_objects(receiver: Receiver) -> None:
    subscribe_to(receiver.url)
    bad, good = uuid4(), uuid4()
    notify(bad, number=2)
    notify(good)
    receiver.answer = lambda event: 500 if event["subject"] == str(bad) and numbers([event]) == [0] else 204
    relay()
    assert numbers(event for event in receiver.events if event["subject"] == str(bad)) == [0, 0, 0, 1]
    assert [event["subject"] for event in receiver.taken] == [str(good), str(bad)]
    assert delivery_states() == [("UNDELIVERED", 3)]
    assert Delivery.objects.get().problem == "It answered 500 Internal Server Error."


def test_resent_dead_letter_is_delivered(receiver: Receiver) -> None:
    subscribe_to(receiver.url)
    notify()
    receiver.answer = lambda event: 400
    relay()
    receiver.answer = lambda event: 200
    assert deliveries.resend_deliveries() == 1
    relay()
    assert len(receiver.taken) == 1
    assert delivery_states() == []


def test_hanging_receiver_delays_no_other_receiver(receiver: Receiver) -> None:
    receiver.answer = lambda event: None
    hanging = subscribe_to(receiver.url, "hangs")
    with receiving() as other:
        subscribe_to(other.url, "works")
        for _ in range(5):
            notify(number=2)
        relay()
        assert len(other.taken) == 10
    assert receiver.taken == []
    assert len(receiver.events) <= 4 * 3
    assert Delivery.objects.filter(subscription=hanging).undelivered().count() == 10
    assert "did not answer within 0.3 seconds" in Subscription.objects.get(pk=hanging.pk).problem


def test_attempts_count_only_deliveries_that_were_sent(receiver: Receiver) -> None:
    subscribe_to(receiver.url)
    notify(number=2)
    receiver.answer = lambda event: None
    relay()
    assert (numbers(receiver.events), delivery_states()) == ([0, 0, 0], [("UNDELIVERED", 3), ("UNDELIVERED", 0)])


def test_test_message_is_sent_immediately_regardless_of_filters_and_pauses(receiver: Receiver) -> None:
    subscription = subscribe_to(
        receiver.url, event_types=["audit.*"], failures=9, due_time=timezone.now() + timedelta(hours=1)
    )
    sent = send_test(subscription)
    relay()
    [event] = receiver.taken
    assert (event["id"], event["type"]) == (str(sent.uuid), "subscription.test")
    assert event["data"]["watcher_object.data"] == {"uuid": str(subscription.uuid), "name": "receiver"}


def test_host_without_an_address_is_reported(receiver: Receiver) -> None:
    subscribe_to("http://nowhere.invalid/")
    notify()
    relay()
    assert Subscription.objects.get().problem == "Its host has no address."


def test_notifications_are_delivered_after_a_restart_of_the_receiver(receiver: Receiver, settings: Settings) -> None:
    settings.WEBHOOK_ATTEMPTS = 100
    settings.WEBHOOK_PAUSE = 3600
    subscribe_to(receiver.url)
    of = uuid4()
    notify(of, number=2)
    receiver.stop()
    relay()
    assert delivery_states() == [("PENDING", 1), ("PENDING", 0)]
    assert Subscription.objects.get().failures == 1
    receiver.start()
    notify(of)
    relay()
    assert receiver.taken == []
    Subscription.objects.update(due_time=timezone.now() - timedelta(seconds=1))
    relay()
    assert numbers(receiver.taken) == [0, 1, 0]
    assert Subscription.objects.get().failures == 0


def test_redirect_is_not_followed_and_retry_after_is_obeyed(receiver: Receiver) -> None:
    subscribe_to(receiver.url)
    notify()
    with receiving() as other:
        receiver.headers = {"Location": other.url, "Retry-After": "600"}
        receiver.answer = lambda event: 307
        relay()
        assert other.events == []
    assert delivery_states() == [("PENDING", 1)]
    assert Delivery.objects.get().due_time > timezone.now() + timedelta(seconds=500)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{}/", "http://localhost:{}/", "http://[::ffff:127.0.0.1]:{}/", "http://[fec0::1]:{}/"]
)
def test_private_address_is_checked_at_each_delivery(receiver: Receiver, settings: Settings, url: str) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = False
    settings.WEBHOOK_ATTEMPTS = 1
    subscribe_to(url.format(receiver.port))
    notify()
    relay()
    assert receiver.events == []
    assert "private address" in Delivery.objects.get().problem


def test_relays_share_deliveries_and_take_over_those_of_a_stopped_relay(receiver: Receiver) -> None:
    subscription = subscribe_to(receiver.url)
    for _ in range(4):
        notify(number=2)
    dispatch()
    one, other, third = (Service.register(Service.RELAY, host) for host in ("one", "other", "third"))
    first = deliveries.claim_deliveries(subscription.pk, one, most=2)
    second = deliveries.claim_deliveries(subscription.pk, other)
    assert [len(line) for line in first + second] == [2, 2, 2, 2]
    assert len({delivery.pk for line in first + second for delivery in line}) == 8
    assert deliveries.claim_deliveries(subscription.pk, third) == []
    one.retire()
    assert deliveries.claim_deliveries(subscription.pk, third) == first


def test_line_is_claimed_by_one_relay_and_the_next_line_by_another() -> None:
    subscription = subscribe_to("http://192.0.2.7/")
    notify(uuid4(), number=4)
    dispatch()
    one, other = (Service.register(Service.RELAY, host) for host in ("one", "other"))
    assert [len(line) for line in deliveries.claim_deliveries(subscription.pk, one, most=2)] == [2]
    assert deliveries.claim_deliveries(subscription.pk, other, most=2) == []
    (later,) = notify()
    dispatch()
    ((found,),) = deliveries.claim_deliveries(subscription.pk, other, most=2)
    assert found.notification.pk == later.pk


@pytest.mark.parametrize("column", ["enabled", "deleted_at"])
def test_relay_stops_the_thread_of_a_disabled_or_deleted_subscription(receiver: Receiver, column: str) -> None:
    subscribe_to(receiver.url)
    notify()
    one = Relay("here")
    one.advance()
    wait_for(lambda: not Delivery.objects.exists() and not one.threads[Subscription.objects.get().pk].is_running)
    assert threads_of_receivers()
    Subscription.objects.update(**{column: False if column == "enabled" else timezone.now()})
    one.advance()
    assert not one.threads
    wait_for(lambda: not threads_of_receivers())
    one.stop()


def threads_of_receivers() -> list[Thread]:
    return [thread for thread in enumerate_threads() if thread.name.startswith("receiver")]


def test_deliveries_of_a_failed_thread_are_retried(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, failures = (
        deliveries.remove_delivered,
        [OperationalError("the connection is lost"), OperationalError("the connection is lost")],
    )

    def lose_once(delivered: list[Delivery]) -> None:
        if failures:
            raise failures.pop()
        remove(delivered)

    monkeypatch.setattr(deliveries, "remove_delivered", lose_once)
    subscribe_to(receiver.url)
    notify(number=2)
    relay()
    assert delivery_states() == []
    assert numbers(receiver.taken) == [0, 1] * 3
