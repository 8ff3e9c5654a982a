"""E-mail: one plain-text message for each notification, sent by Django's SMTP backend.

As for webhooks, the total time of a message is limited, not only that of each read.
"""

import smtplib
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parseaddr
from types import SimpleNamespace
from typing import Any, cast

import requests
from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend

from watcher_site.models import Subscription
from watcher_site.notifications import messages
from watcher_site.notifications.deliveries import SentNotification
from watcher_site.notifications.receivers import SequentialReceiver, Undelivered, Unreachable
from watcher_site.notifications.texts import describe_notification
from watcher_site.notifications.webhooks import current_request, interrupt_after


class TimedSMTP(smtplib.SMTP):
    """An SMTP connection that the timer of the thread interrupts."""

    refused: Mapping[str, tuple[int, bytes]] = {}
    """The addresses that the server refused in the last message, each with its answer."""

    def _get_socket(self, *arguments: Any) -> socket.socket:
        made: socket.socket = super()._get_socket(*arguments)  # type: ignore[misc]
        timer = current_request.watch
        # A duplicate, because TLS replaces the socket. Its shutdown ends the connection of both.
        timer.connection = SimpleNamespace(sock=made.dup())
        timer.begin()
        return made

    def starttls(self, *arguments: Any, **options: Any) -> tuple[int, bytes]:
        try:
            return super().starttls(*arguments, **options)
        except smtplib.SMTPNotSupportedError:
            raise Unreachable(messages.MAIL_WITHOUT_STARTTLS.text) from None

    def login(self, *arguments: Any, **options: Any) -> tuple[int, bytes]:
        try:
            return super().login(*arguments, **options)
        except smtplib.SMTPAuthenticationError as refusal:
            raise Unreachable(messages.MAIL_PASSWORD_REFUSED.fill(number=refusal.smtp_code)) from None
        except (smtplib.SMTPServerDisconnected, smtplib.SMTPResponseException):
            raise
        except smtplib.SMTPException:
            # The server offers no method of authentication, or none of those of smtplib.
            raise Unreachable(messages.MAIL_WITHOUT_PASSWORDS.text) from None

    def rcpt(self, recip: str, options: Any = ()) -> tuple[int, bytes]:
        """Send an address. A temporary refusal ends the message, so that a retry reaches all addresses once."""
        code, answer = super().rcpt(recip, options)
        if 400 <= code < 500:
            raise smtplib.SMTPRecipientsRefused({recip: (code, answer)})
        return code, answer

    def sendmail(self, *arguments: Any, **options: Any) -> dict[str, tuple[int, bytes]]:
        refused = super().sendmail(*arguments, **options)
        self.refused = refused
        return refused


class TimedSMTPWithTLS(smtplib.SMTP_SSL, TimedSMTP):
    """An SMTP connection with TLS from its beginning that a timer can interrupt."""


class TimedBackend(EmailBackend):
    """Django's SMTP backend with connections that the timer of the thread interrupts."""

    @property
    def connection_class(self) -> type[TimedSMTP]:
        return TimedSMTPWithTLS if self.use_ssl else TimedSMTP

    def send(self, message: EmailMessage) -> Mapping[str, tuple[int, bytes]]:
        """Send a message, and return the addresses that the server refused, each with its answer."""
        try:
            self.open()
            self.send_messages([message])
            return cast(TimedSMTP, self.connection).refused
        finally:
            # A message whose connection does not end properly was sent.
            with suppress(OSError):
                self.close()


class MailReceiver(SequentialReceiver):
    def __init__(self, subscription: Subscription) -> None:
        self.addresses: list[str] = subscription.addresses or []

    def send(self, notification: SentNotification) -> None:
        if not settings.EMAIL_HOST:
            raise Unreachable(messages.MAIL_NOT_CONFIGURED.text)
        message = make_message(notification, self.addresses)
        backend = TimedBackend(fail_silently=False, timeout=settings.WEBHOOK_TIMEOUT)
        try:
            with interrupt_after(settings.WEBHOOK_TIMEOUT) as timer:
                try:
                    self.warning = describe_refused(backend.send(message)) or None
                finally:
                    if timer.connection:
                        timer.connection.sock.close()
        except requests.Timeout:
            raise Unreachable(messages.MAIL_DID_NOT_ANSWER.fill(seconds=f"{settings.WEBHOOK_TIMEOUT:g}")) from None
        except smtplib.SMTPRecipientsRefused as refusal:
            raise Undelivered(describe_refused(refusal.recipients)) from None
        except smtplib.SMTPSenderRefused as refusal:
            raise Undelivered(messages.MAIL_SENDER_REFUSED.fill(number=refusal.smtp_code)) from None
        except smtplib.SMTPDataError as refusal:
            raise Undelivered(messages.MAIL_MESSAGE_REFUSED.fill(number=refusal.smtp_code)) from None
        except OSError as problem:
            if is_timeout(problem):
                raise Unreachable(messages.MAIL_DID_NOT_ANSWER.fill(seconds=f"{settings.WEBHOOK_TIMEOUT:g}")) from None
            raise Unreachable(describe_failure(problem)) from None


def make_message(notification: SentNotification, addresses: list[str]) -> EmailMessage:
    """Return the message of a notification. Repeated attempts have the same id."""
    subject, lines, link = describe_notification(notification)
    _, sender = parseaddr(settings.DEFAULT_FROM_EMAIL)
    headers = {
        "Message-ID": f"<{notification.uuid}@{sender.rpartition('@')[2]}>",
        "Date": notification.created_at.strftime("%a, %d %b %Y %H:%M:%S +0000"),
        # Servers send no automatic replies to such messages (RFC 3834).
        "Auto-Submitted": "auto-generated",
    }
    body = "\n".join([*lines, *(["", link] if link else []), ""])
    return EmailMessage(subject, body, settings.DEFAULT_FROM_EMAIL, addresses, headers=headers)


def describe_refused(refused: Mapping[str, tuple[int, bytes]]) -> str:
    answers = [
        messages.MAIL_ADDRESS_REFUSED.fill(number=code, address=address) for address, (code, _) in refused.items()
    ]
    return messages.MAIL_ADDRESSES_REFUSED.fill(answers=", ".join(answers)) if answers else ""


def describe_failure(problem: OSError) -> str:
    match problem:
        case ssl.SSLCertVerificationError():
            # Messages about host names end with a period, others do not.
            return messages.MAIL_NOT_TRUSTED.fill(reason=problem.verify_message.rstrip("."))
        case ssl.SSLError():
            reason = (problem.reason or "the connection was closed").replace("_", " ").lower()
            return messages.MAIL_WITHOUT_TLS.fill(reason=reason)
        case smtplib.SMTPResponseException(smtp_code=-1):
            return messages.MAIL_WITHOUT_SMTP.text
        case smtplib.SMTPResponseException():
            return messages.MAIL_ANSWERED.fill(number=problem.smtp_code)
        case socket.gaierror():
            return messages.MAIL_WITHOUT_ADDRESS.text
        case smtplib.SMTPServerDisconnected() | ConnectionResetError() | BrokenPipeError():
            return messages.MAIL_CLOSED.text
    return messages.MAIL_NOT_CONNECTED.fill(reason=problem.strerror or type(problem).__name__)


def is_timeout(problem: BaseException | None) -> bool:
    """Return whether a read timed out, which smtplib reports as a closed connection."""
    while problem is not None:
        if isinstance(problem, TimeoutError):
            return True
        problem = problem.__context__
    return False
