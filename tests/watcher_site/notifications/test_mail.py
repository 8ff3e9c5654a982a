"""Subscriptions by e-mail, with a mail server on loopback."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from socket import create_server
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from pytest_django import Settings

from tests.watcher_site.notifications.receiver import dripping, receiving
from tests.watcher_site.notifications.relaying import delivery_states, notify, relay, subscribe_to
from watcher_site.models import Notification, Subscription
from watcher_site.notifications.mail import MailReceiver
from watcher_site.notifications.receivers import Unreachable
from watcher_site.notifications.subscriptions import checked_addresses, send_test, subscribe
from watcher_site.refusals import Invalid

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESSES = ["rosa@example.org", "max@example.org"]


class MailServer:
    """A handler of aiosmtpd that stores accepted messages. A test sets the addresses and messages to refuse."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.answer, self.refusals = "451 later", 0
        self.answers: dict[str, str] = {}
        self.attempts = 0

    # aiosmtpd finds handlers by these names.
    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.attempts += 1
        answer = self.answer if self.attempts <= self.refusals else "250 OK"
        if answer.startswith("250"):
            self.messages.append(message_from_bytes(envelope.content, policy=policy.default))
            self.recipients.append(envelope.rcpt_tos)
        return answer


@contextmanager
def mail_server(settings: Any) -> Iterator[MailServer]:
    """Start a mail server, and set it in the settings."""
    handler = MailServer()
    with create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    controller = Controller(handler, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
        settings.DEFAULT_FROM_EMAIL = "Watcher <watcher@example.org>"
        yield handler
    finally:
        controller.stop()


@pytest.fixture
def server(settings: Settings) -> Iterator[MailServer]:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    settings.WEBHOOK_PAUSE = settings.POLL_INTERVAL = 0
    settings.WEBHOOK_TIMEOUT = 30
    settings.WEBHOOK_ATTEMPTS = 3
    with mail_server(settings) as one:
        yield one


def subscribe_by_mail(name: str = "mail") -> Subscription:
    return subscribe_to("", name, kind="mail", addresses=ADDRESSES, secret="")


def test_notification_is_sent_once_to_all_addresses(server: MailServer, settings: Settings) -> None:
    settings.SITE_URL = "https://watcher.example.org"
    subscribe_by_mail()
    (notification,) = notify(event_type="action.execution.error")
    Notification.objects.update(person="rosa")
    relay()
    (message,) = server.messages
    assert (server.recipients, delivery_states()) == ([ADDRESSES], [])
    text = message.get_content()
    plan = notification.snapshot["plan"]["uuid"]
    assert message["Subject"] == f"[Watcher] Action nop of action plan {plan}: ONGOING"
    assert (message["From"], message.get_content_type()) == ("Watcher <watcher@example.org>", "text/plain")
    assert "Event: action.execution.error (INFO)" in text
    assert "State: ONGOING (before: PENDING)" in text
    assert f"Time: {notification.created_at:%Y-%m-%d %H:%M:%S} UTC" in text
    assert ("User: rosa" in text, "Message: number 0" in text) == (True, True)
    assert f"https://watcher.example.org/console/actions/{notification.object_uuid}/" in text.replace("=\n", "")


def test_refused_message_is_retried(server: MailServer) -> None:
    subscribe_by_mail()
    notify()
    server.refusals = 1
    relay()
    assert (server.attempts, len(server.messages), delivery_states()) == (2, 1, [])


def test_repeatedly_refused_message_becomes_a_dead_letter(server: MailServer) -> None:
    subscribe_by_mail()
    notify()
    server.answer, server.refusals = "554 no", 9
    relay()
    assert (server.attempts, delivery_states()) == (3, [("UNDELIVERED", 3)])
    assert Subscription.objects.get().problem == "The mail server answered 554 to the message."


def test_permanently_refused_address_is_reported_and_the_others_get_the_message(server: MailServer) -> None:
    subscribe_by_mail()
    notify()
    server.answers = {"max@example.org": "550 unknown"}
    relay()
    assert server.recipients == [["rosa@example.org"]]
    assert Subscription.objects.get().problem == "The mail server answered 550 to the address max@example.org."


def test_temporarily_refused_address_defers_the_message_for_all(server: MailServer) -> None:
    subscribe_by_mail()
    notify()
    server.answers = {"max@example.org": "450 later"}
    relay()
    assert (server.messages, delivery_states()) == ([], [("UNDELIVERED", 3)])


def test_hanging_mail_server_delays_no_other_receiver(server: MailServer, settings: Settings) -> None:
    settings.WEBHOOK_TIMEOUT, settings.WEBHOOK_ATTEMPTS = 0.3, 1
    with dripping(b"220 ") as url, receiving() as other:
        settings.EMAIL_PORT = int(url.rsplit(":", 1)[1].strip("/"))
        subscribe_by_mail()
        subscribe_to(other.url, "works")
        notify()
        began = time.monotonic()
        relay()
    assert (len(other.taken), delivery_states()) == (1, [("UNDELIVERED", 1)])
    problem = Subscription.objects.get(name="mail").problem
    assert problem == "The mail server did not answer within 0.3 seconds."
    assert time.monotonic() - began < 15


def test_control_characters_in_a_name_add_no_header_and_no_line(server: MailServer) -> None:
    subscription = subscribe_by_mail("pager\r\nBcc: eve@example.org\u2028UUID: 1")
    send_test(subscription)
    relay()
    (message,) = server.messages
    assert (message["Bcc"], server.recipients) == (None, [ADDRESSES])
    assert message["Subject"] == "[Watcher] Subscription pager Bcc: eve@example.org UUID: 1: test"
    assert len([line for line in message.get_content().splitlines() if line.startswith(("Bcc", "UUID: 1"))]) == 0


def test_mail_server_without_tls_gets_no_message_if_tls_is_set(server: MailServer, settings: Settings) -> None:
    settings.EMAIL_USE_SSL = True
    with pytest.raises(Unreachable, match="could not be connected to"):
        MailReceiver(subscribe_by_mail()).send(notify()[0])
    assert server.messages == []


def test_missing_mail_server_of_a_relay_is_reported(settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(Unreachable, match="EMAIL_URL is not set for the relay"):
        MailReceiver(subscribe_by_mail()).send(notify()[0])


def test_subscription_by_mail_without_a_mail_server_is_refused(settings: Settings) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(Invalid, match="kind: the site sends no e-mail, because the variable EMAIL_URL is not set"):
        subscribe("mail", kind="mail", addresses=ADDRESSES)


@pytest.mark.parametrize(
    "addresses",
    [[], "rosa@example.org", ["rosa"], [5], ["rosa@example.org\nBcc: eve@example.org"], ['"a\x01"@example.org'], None],
)
def test_invalid_addresses_are_refused(addresses: object) -> None:
    with pytest.raises(Invalid, match="addresses: "):
        checked_addresses(addresses)
