"""Subscriptions of chats, with an HTTP receiver on loopback."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.watcher_site.notifications.receiver import Receiver, receiving
from tests.watcher_site.notifications.relaying import delivery_states, notify, relay
from watcher_site.models import Subscription
from watcher_site.notifications.subscriptions import change_subscription, history_details, subscribe
from watcher_site.notifications.webhooks import unseal_secret
from watcher_site.refusals import Invalid

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    settings.WEBHOOK_PAUSE = settings.POLL_INTERVAL = 0
    settings.WEBHOOK_TIMEOUT = 30
    settings.WEBHOOK_ATTEMPTS = 3
    with receiving() as one:
        yield one


def test_chat_gets_a_text_at_its_secret_url(receiver: Receiver) -> None:
    subscription, secret = subscribe("chat", f"{receiver.url}/T0KEN", kind="slack")
    notify()
    relay()
    ((headers, _),) = receiver.requests
    text = receiver.taken[0]["text"]
    assert (receiver.taken[0].keys(), secret) == ({"text"}, None)
    assert headers["content-type"] == "application/json"
    assert ("Event: action.update (INFO)" in text, text.startswith("```\n[Watcher] Action nop")) == (True, True)
    assert unseal_secret(subscription) == f"{receiver.url}/T0KEN"


def test_characters_that_a_chat_interprets_are_escaped(receiver: Receiver) -> None:
    subscribe("chat", receiver.url, kind="slack")
    (notification,) = notify()
    notification.snapshot["status_message"] = "<!channel> & ``` @all"
    notification.save()
    relay()
    assert "Message: &lt;!channel&gt; &amp; ''' @all\n```" in receiver.taken[0]["text"]


def test_message_that_a_chat_refuses_becomes_a_dead_letter(receiver: Receiver) -> None:
    subscribe("chat", receiver.url, kind="slack")
    notify()
    receiver.answer = lambda event: 404
    relay()
    assert (len(receiver.events), delivery_states()) == (3, [("UNDELIVERED", 3)])


def test_secret_part_of_the_url_is_not_readable(receiver: Receiver) -> None:
    subscription, _ = subscribe("chat", f"{receiver.url}/T0KEN", kind="slack")
    stored = Subscription.objects.get()
    assert "T0KEN" not in f"{stored.url} {stored.secret} {history_details(subscription)}"
    changed = change_subscription(subscription, {"url": f"{receiver.url}/0THER"})
    assert (changed.url, unseal_secret(changed)) == (stored.url, f"{receiver.url}/0THER")


def test_url_of_a_chat_without_a_path_is_refused(receiver: Receiver) -> None:
    with pytest.raises(Invalid, match="url: must be the whole URL"):
        subscribe("chat", "http://192.0.2.7/", kind="slack")


def test_private_address_of_a_chat_is_refused(settings: Settings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = False
    with pytest.raises(Invalid, match="private address"):
        subscribe("chat", "http://10.1.2.3/hook", kind="slack")
