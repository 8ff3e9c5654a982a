"""Webhooks: one CloudEvent per request, signed as specified by Standard Webhooks.

The total time of a request is limited too: socket timeouts apply to each read, so that a slow response could stay
within them indefinitely.
"""

import socket
import time
from abc import abstractmethod
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from secrets import token_bytes
from socket import gaierror
from threading import Timer, local
from typing import Any

import requests
from django.conf import settings
from requests.adapters import HTTPAdapter
from requests_hardened import Config, HTTPSession
from requests_hardened.ip_filter import InvalidIPAddress
from standardwebhooks import Webhook
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, NameResolutionError

from watcher_site.models import Subscription
from watcher_site.notifications import messages
from watcher_site.notifications.deliveries import SentNotification
from watcher_site.notifications.envelope import cloud_event
from watcher_site.notifications.receivers import SequentialReceiver, Undelivered, Unreachable
from watcher_site.notifications.webhook_addresses import PublicAdapter
from watcher_site.refusals import Invalid
from watcher_site.request_context import seal, unseal

PREFIX = "whsec_"
# The limits of Standard Webhooks for secrets, in bytes.
LEAST_SECRET, MOST_SECRET = 24, 64
# The part of a response that is read, in bytes, so that the connection can be reused.
MOST_ANSWER = 64 * 1024
# The longest pause that a receiver may request, in seconds.
MOST_PAUSE = 3600


def make_secret() -> str:
    return f"{PREFIX}{b64encode(token_bytes(32)).decode()}"


def checked_secret(secret: object) -> str:
    """Return a secret that can sign notifications.

    Raises:
        Invalid: it is not valid; the message names the rule, but not the secret.
    """
    rule = f"secret: must be {PREFIX} and {LEAST_SECRET} to {MOST_SECRET} bytes in base64."
    if not isinstance(secret, str) or not secret.startswith(PREFIX):
        raise Invalid(rule)
    try:
        length = len(b64decode(secret.removeprefix(PREFIX), validate=True))
    except (Error, ValueError):
        raise Invalid(rule) from None
    if not LEAST_SECRET <= length <= MOST_SECRET:
        raise Invalid(rule)
    return secret


def seal_secret(secret: str) -> str:
    return seal({"secret": secret})


def unseal_secret(subscription: Subscription) -> str:
    """Return the secret of a subscription: the key of a webhook, or the URL of Slack.

    Raises:
        Invalid: it was sealed with an unknown key.
    """
    return str(unseal(subscription.secret)["secret"])


class HTTPReceiver(SequentialReceiver):
    """A receiver to which each notification is one POST."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.thread_data = local()
        self.sessions: list[requests.Session] = []

    @property
    def session(self) -> requests.Session:
        """The session of this thread. It reuses connections, and ignores cookies and the environment's proxies."""
        if not hasattr(self.thread_data, "session"):
            timeout = settings.WEBHOOK_TIMEOUT
            session = HTTPSession(
                Config(
                    # The stricter adapters are mounted below.
                    ip_filter_enable=False,
                    ip_filter_allow_loopback_ips=False,
                    never_redirect=True,
                    default_timeout=(timeout, timeout),
                    user_agent_override="watcher-site",
                )
            )
            if not settings.WEBHOOK_PRIVATE_ADDRESSES:
                session.mount("http://", PublicAdapter(is_https_proto=False))
                session.mount("https://", PublicAdapter(is_https_proto=True))
            make_interruptible(session)
            session.trust_env = False
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
            self.thread_data.session = session
            self.sessions.append(session)
        session_of_thread: requests.Session = self.thread_data.session
        return session_of_thread

    @abstractmethod
    def request(self, notification: SentNotification) -> tuple[bytes, dict[str, str]]:
        """Return the body and the headers of the request."""

    def send(self, notification: SentNotification) -> None:
        body, headers = self.request(notification)
        try:
            with (
                interrupt_after(settings.WEBHOOK_TIMEOUT) as watch,
                self.session.post(self.url, data=body, headers=headers, stream=True) as response,
            ):
                # A truncated header looks like a complete one.
                watch.require_time()
                drain(response)
                require_accepted(response)
        except InvalidIPAddress:
            raise Undelivered(messages.PRIVATE_ADDRESS.text) from None
        except requests.Timeout:
            raise Unreachable(messages.DID_NOT_ANSWER.fill(seconds=f"{settings.WEBHOOK_TIMEOUT:g}")) from None
        except requests.exceptions.SSLError:
            raise Unreachable(messages.NOT_TRUSTED.text) from None
        except (requests.RequestException, OSError) as problem:
            if has_no_address(problem):
                raise Unreachable(messages.HOST_WITHOUT_ADDRESS.text) from None
            raise Unreachable(messages.NOT_CONNECTED.text) from None

    def close(self) -> None:
        super().close()
        for session in self.sessions:
            session.close()


class WebhookReceiver(HTTPReceiver):
    def __init__(self, subscription: Subscription) -> None:
        """Raise `Invalid` if the subscription's secret cannot be read."""
        super().__init__(subscription.url)
        self.webhook = Webhook(unseal_secret(subscription))

    def request(self, notification: SentNotification) -> tuple[bytes, dict[str, str]]:
        event = cloud_event(notification)
        headers = {**event.headers, **self.sign(str(notification.uuid), event.body.decode())}
        if notification.request_id:
            headers["x-openstack-request-id"] = notification.request_id
        return event.body, headers

    def sign(self, identifier: str, body: str) -> dict[str, str]:
        """Return the headers with which a receiver verifies the sender, and detects replays by their time or id."""
        now = datetime.now(UTC)
        return {
            "webhook-id": identifier,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": self.webhook.sign(identifier, now, body),
        }


def has_no_address(problem: BaseException | None) -> bool:
    """Return whether a request failed because its host name cannot be resolved."""
    while problem is not None:
        if isinstance(problem, gaierror | NameResolutionError):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def drain(response: requests.Response) -> None:
    """Read and discard a response, unless it is long, slow or interrupted. Its status has been received."""
    read, until = 0, time.monotonic() + settings.WEBHOOK_TIMEOUT
    with suppress(HTTPError, OSError):
        for chunk in response.raw.stream(4096, decode_content=False):
            read += len(chunk)
            if read > MOST_ANSWER or time.monotonic() > until:
                return


def require_accepted(response: requests.Response) -> None:
    """Raise `Undelivered` unless the status is a success. Redirects are not followed."""
    if 200 <= response.status_code < 300:
        return
    try:
        text = f"{response.status_code} {HTTPStatus(response.status_code).phrase}"
    except ValueError:
        text = str(response.status_code)
    raise Undelivered(messages.ANSWERED.fill(answer=text), requested_pause(response.headers.get("Retry-After", "")))


def requested_pause(text: str) -> float:
    return min(int(text), MOST_PAUSE) if text.isascii() and text.isdigit() and len(text) < 10 else 0


# The `RequestTimer` of this thread's current request.
current_request = local()


class RequestTimer:
    """Interrupts a request when its time is over: one timeout for connecting and one for the response."""

    connection: Any = None
    is_over = False
    timer: Timer | None = None

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def begin(self) -> None:
        """Start the timer."""
        self.stop()
        self.timer = Timer(self.seconds, self.end)
        self.timer.daemon = True
        self.timer.start()

    def stop(self) -> None:
        if self.timer:
            self.timer.cancel()

    def require_time(self) -> None:
        """Raise `requests.Timeout` if the time is over: the response that was read may be truncated."""
        if self.is_over:
            raise requests.Timeout

    def end(self) -> None:
        self.is_over = True
        with suppress(AttributeError, OSError, TypeError):
            # A thread that uses the socket gets the end of the connection.
            socket.socket.shutdown(self.connection.sock, socket.SHUT_RDWR)


class InterruptibleConnection:
    """A mixin of connections, which registers them with the timer of the thread's request."""

    def connect(self) -> None:
        watch = self.register_with_timer()
        super().connect()  # type: ignore[misc]
        if watch:
            watch.begin()

    def request(self, *arguments: Any, **named: Any) -> None:
        self.register_with_timer()
        super().request(*arguments, **named)  # type: ignore[misc]

    def register_with_timer(self) -> RequestTimer | None:
        watch: RequestTimer | None = getattr(current_request, "watch", None)
        if watch:
            watch.connection = self
        return watch


class InterruptibleHTTPConnection(InterruptibleConnection, HTTPConnection):
    """An interruptible HTTP connection."""


class InterruptibleHTTPSConnection(InterruptibleConnection, HTTPSConnection):
    """An interruptible HTTPS connection."""


class InterruptibleHTTPPool(HTTPConnectionPool):
    ConnectionCls = InterruptibleHTTPConnection


class InterruptibleHTTPSPool(HTTPSConnectionPool):
    ConnectionCls = InterruptibleHTTPSConnection


def make_interruptible(session: requests.Session) -> None:
    """Make the requests of a session interruptible by `interrupt_after`."""
    for adapter in session.adapters.values():
        if isinstance(adapter, HTTPAdapter):
            adapter.poolmanager.pool_classes_by_scheme = {
                "http": InterruptibleHTTPPool,
                "https": InterruptibleHTTPSPool,
            }


@contextmanager
def interrupt_after(seconds: float) -> Iterator[RequestTimer]:
    """Interrupt a request of this thread that is not completed ``seconds`` after it was connected.

    Raises:
        requests.Timeout: it was interrupted.
    """
    watch = current_request.watch = RequestTimer(seconds)
    watch.begin()
    try:
        yield watch
    except (requests.RequestException, OSError) as problem:
        if watch.is_over:
            raise requests.Timeout from problem
        raise
    finally:
        watch.stop()
        current_request.watch = None
