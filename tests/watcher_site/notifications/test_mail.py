"""Subscriptions by e-mail, with a mail server on loopback."""

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from socket import create_server
from threading import Event, Thread
from typing import Any

import pytest
import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from pytest_django import Settings

from tests.watcher_site.notifications.receiver import dripping, receiving
from tests.watcher_site.notifications.relaying import delivery_states, notify, relay, subscribe_to
from watcher_site.models import Notification, Subscription
from watcher_site.notifications.deliveries import resend_deliveries
from watcher_site.notifications.mail import MailReceiver
from watcher_site.notifications.receivers import Unreachable
from watcher_site.notifications.subscriptions import checked_addresses, send_test, subscribe
from watcher_site.refusals import Invalid

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning"),
]
ADDRESSES = ["rosa@example.org", "max@example.org"]
USER, PASSWORD = "watcher", "correct-horse-battery"


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
def mail_server(settings: Any, **options: Any) -> Iterator[MailServer]:
    """Start a mail server with options of aiosmtpd, and set it in the settings."""
    handler = MailServer()
    with create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    controller = Controller(handler, hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
        settings.DEFAULT_FROM_EMAIL = "Watcher <watcher@example.org>"
        yield handler
    finally:
        controller.stop()


@pytest.fixture(autouse=True)
def _delivery_settings(settings: Settings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    settings.WEBHOOK_PAUSE = settings.POLL_INTERVAL = 0
    settings.WEBHOOK_TIMEOUT = 30
    settings.WEBHOOK_ATTEMPTS = 3


@pytest.fixture
def server(settings: Settings) -> Iterator[MailServer]:
    with mail_server(settings) as one:
        yield one


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The context of a server with a certificate that this process trusts."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    return context_of(authority.issue_cert("127.0.0.1"))


def context_of(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


def require_password(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    expected = LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=data == expected, handled=False)


LOGIN: dict[str, Any] = {"authenticator": require_password, "auth_required": True}


def connect_with(settings: Any, protocol: str, user: str = "", password: str = "") -> None:
    """Set the settings that `EMAIL_URL` sets: STARTTLS, TLS from the beginning, or neither."""
    settings.EMAIL_USE_TLS, settings.EMAIL_USE_SSL = protocol == "STARTTLS", protocol == "TLS"
    settings.EMAIL_HOST_USER, settings.EMAIL_HOST_PASSWORD = user, password


def server_options(protocol: str, certificate: ssl.SSLContext) -> dict[str, Any]:
    if protocol == "STARTTLS":
        return {"tls_context": certificate, "require_starttls": True}
    # Without its own command, aiosmtpd does not know that the connection is encrypted.
    return {"ssl_context": certificate, "auth_require_tls": False}


def deliver() -> str | None:
    """Deliver a notification by mail, and return the problem of the subscription."""
    subscription = subscribe_by_mail()
    notify()
    relay()
    subscription.refresh_from_db()
    return subscription.problem


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


@pytest.mark.parametrize("protocol", ["STARTTLS", "TLS"])
def test_message_is_sent_with_tls_and_a_password(
    protocol: str, certificate: ssl.SSLContext, settings: Settings
) -> None:
    with mail_server(settings, **server_options(protocol, certificate), **LOGIN) as server:
        connect_with(settings, protocol, USER, PASSWORD)
        assert deliver() is None
    assert (server.recipients, delivery_states()) == ([ADDRESSES], [])


@pytest.mark.parametrize("protocol", ["STARTTLS", "TLS"])
def test_wrong_password_is_reported_without_the_password(
    protocol: str, certificate: ssl.SSLContext, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with mail_server(settings, **server_options(protocol, certificate), **LOGIN) as server:
        connect_with(settings, protocol, USER, "wrong-horse-battery")
        assert deliver() == "The mail server answered 535 to the user and password of EMAIL_URL."
    assert (server.messages, delivery_states()) == ([], [("UNDELIVERED", 3)])
    assert "horse" not in caplog.text


@pytest.mark.parametrize("protocol", ["STARTTLS", "TLS"])
def test_certificate_of_an_unknown_authority_is_reported(
    protocol: str, certificate: ssl.SSLContext, settings: Settings
) -> None:
    unknown = context_of(trustme.CA().issue_cert("127.0.0.1"))
    with mail_server(settings, **server_options(protocol, unknown), **LOGIN) as server:
        connect_with(settings, protocol, USER, PASSWORD)
        problem = deliver()
    assert problem == "The certificate of the mail server is not trusted: unable to get local issuer certificate."
    assert (server.messages, delivery_states()) == ([], [("UNDELIVERED", 3)])


def test_certificate_of_another_host_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    other = context_of(authority.issue_cert("mail.example.org"))
    with mail_server(settings, **server_options("TLS", other)):
        connect_with(settings, "TLS")
        problem = deliver()
    assert str(problem).startswith("The certificate of the mail server is not trusted: IP address mismatch")


def test_mail_server_without_starttls_gets_neither_password_nor_message(settings: Settings) -> None:
    with mail_server(settings, authenticator=require_password, auth_require_tls=False) as server:
        connect_with(settings, "STARTTLS", USER, PASSWORD)
        assert deliver() == "The mail server does not offer STARTTLS."
    assert (server.messages, delivery_states()) == ([], [("UNDELIVERED", 3)])


def test_mail_server_without_tls_gets_no_message_if_tls_is_set(server: MailServer, settings: Settings) -> None:
    settings.EMAIL_USE_SSL = True
    with pytest.raises(Unreachable, match="No TLS connection to the mail server could be made"):
        MailReceiver(subscribe_by_mail()).send(notify()[0])
    assert server.messages == []


def test_mail_server_without_authentication_is_reported(server: MailServer, settings: Settings) -> None:
    connect_with(settings, "", USER, PASSWORD)
    assert deliver() == "The mail server does not accept a user and a password on this connection."


def test_mail_server_that_requires_a_password_is_reported(settings: Settings) -> None:
    with mail_server(settings, auth_require_tls=False, **LOGIN) as server:
        assert deliver() == "The mail server answered 530 to the sender."
    assert (server.messages, delivery_states()) == ([], [("UNDELIVERED", 3)])


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "The mail server closed the connection."),
        (["220 mail"], "The mail server closed the connection."),
        (["220 mail", "250 mail", "250 OK", "250 OK", "250 OK", "354 go"], "The mail server closed the connection."),
        (["421 too busy"], "The mail server answered 421."),
        (["554 no"], "The mail server answered 554."),
        (["HTTP/1.1 400 Bad Request"], "The mail server does not use SMTP on this port."),
        (["220 mail", "250 mail", "550 no"], "The mail server answered 550 to the sender."),
    ],
)
def test_conversation_that_the_mail_server_ends_is_reported(
    lines: list[str], problem: str, settings: Settings
) -> None:
    settings.WEBHOOK_ATTEMPTS = 1
    with ending_server(settings, lines):
        assert deliver() == problem
    assert delivery_states() == [("UNDELIVERED", 1)]


@pytest.mark.parametrize("protocol", ["", "STARTTLS", "TLS"])
def test_silent_mail_server_is_reported_as_one_that_does_not_answer(protocol: str, settings: Settings) -> None:
    settings.WEBHOOK_TIMEOUT, settings.WEBHOOK_ATTEMPTS = 0.3, 1
    lines = ["220 mail", "250-mail\r\n250 STARTTLS", "220 go"] if protocol == "STARTTLS" else []
    with ending_server(settings, lines, ends=False):
        connect_with(settings, protocol)
        assert deliver() == "The mail server did not answer within 0.3 seconds."


def test_port_without_a_mail_server_is_reported(settings: Settings) -> None:
    with mail_server(settings):
        pass
    assert deliver() == "The mail server could not be connected to: Connection refused."


def test_deferred_message_is_sent_to_each_address_once(server: MailServer, settings: Settings) -> None:
    settings.WEBHOOK_ATTEMPTS = 1
    server.answers = {"max@example.org": "450 later"}
    deliver()
    server.answers = {}
    resend_deliveries()
    relay()
    assert (server.recipients, delivery_states()) == ([ADDRESSES], [])


@contextmanager
def ending_server(settings: Any, lines: list[str], *, ends: bool = True) -> Iterator[None]:
    """Start a mail server that answers with these lines, and then closes the connection or hangs."""
    listening = create_server(("127.0.0.1", 0))
    closing = Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as received:
            for line in lines:
                connection.sendall(f"{line}\r\n".encode())
                received.readline()
            if not ends:
                closing.wait(30)

    Thread(target=serve, daemon=True).start()
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", listening.getsockname()[1]
    settings.DEFAULT_FROM_EMAIL = "watcher@example.org"
    try:
        yield
    finally:
        closing.set()
        listening.close()


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
