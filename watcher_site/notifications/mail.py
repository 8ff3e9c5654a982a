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
from watcher_site.notifications.deliveries import SentNotification
from watcher_site.notifications.receivers import SequentialReceiver, Undelivered, Unreachable
from watcher_site.notifications.texts import describe_notification
from watcher_site.notifications.webhooks import current_request, interrupt_after

NO_ANSWER = "The mail server did not answer within {:g} seconds."


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
            raise Unreachable("The mail server does not offer STARTTLS.") from None

    def login(self, *arguments: Any, **options: Any) -> tuple[int, bytes]:
        try:
            return super().login(*arguments, **options)
        except smtplib.SMTPAuthenticationError as refusal:
            raise Unreachable(
                f"The mail server answered {refusal.smtp_code} to the user and password of EMAIL_URL."
            ) from None
        except (smtplib.SMTPServerDisconnected, smtplib.SMTPResponseException):
            raise
        except smtplib.SMTPException:
            # The server offers no method of authentication, or none of those of smtplib.
            raise Unreachable("The mail server does not accept a user and a password on this connection.") from None

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
            raise Unreachable("EMAIL_URL is not set for the relay.")
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
            raise Unreachable(NO_ANSWER.format(settings.WEBHOOK_TIMEOUT)) from None
        except smtplib.SMTPRecipientsRefused as refusal:
            raise Undelivered(describe_refused(refusal.recipients)) from None
        except smtplib.SMTPSenderRefused as refusal:
            raise Undelivered(f"The mail server answered {refusal.smtp_code} to the sender.") from None
        except smtplib.SMTPDataError as refusal:
            raise Undelivered(f"The mail server answered {refusal.smtp_code} to the message.") from None
        except OSError as problem:
            if is_timeout(problem):
                raise Unreachable(NO_ANSWER.format(settings.WEBHOOK_TIMEOUT)) from None
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
    answers = [f"{code} to the address {address}" for address, (code, _) in refused.items()]
    return f"The mail server answered {', '.join(answers)}." if answers else ""


def describe_failure(problem: OSError) -> str:
    match problem:
        case ssl.SSLCertVerificationError():
            # Messages about host names end with a period, others do not.
            return f"The certificate of the mail server is not trusted: {problem.verify_message.rstrip('.')}."
        case ssl.SSLError():
            reason = (problem.reason or "the connection was closed").replace("_", " ").lower()
            return f"No TLS connection to the mail server could be made: {reason}."
        case smtplib.SMTPResponseException(smtp_code=-1):
            return "The mail server does not use SMTP on this port."
        case smtplib.SMTPResponseException():
            return f"The mail server answered {problem.smtp_code}."
        case socket.gaierror():
            return "The mail server's host has no address."
        case smtplib.SMTPServerDisconnected() | ConnectionResetError() | BrokenPipeError():
            return "The mail server closed the connection."
    return f"The mail server could not be connected to: {problem.strerror or type(problem).__name__}."


def is_timeout(problem: BaseException | None) -> bool:
    """Return whether a read timed out, which smtplib reports as a closed connection."""
    while problem is not None:
        if isinstance(problem, TimeoutError):
            return True
        problem = problem.__context__
    return False
