"""Middleware for all requests: client addresses, compression, caches, sessions and headers."""

from collections.abc import Callable, Collection
from functools import partial
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from time import time
from typing import Any
from uuid import uuid4

from csp.constants import HEADER
from csp.middleware import CSPMiddleware
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers
from structlog.contextvars import bound_contextvars

from watcher_site.request_context import caller_of, on_behalf_of

# The session key of the Keystone user to whom the session belongs.
KEYSTONE_KEY = "keystone"
Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def parse_address(text: str) -> Address | None:
    """Return the address in a text, or None if it is invalid. IPv4 addresses mapped into IPv6 are returned as IPv4."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def is_trusted(text: str, trusted: Collection[Network]) -> bool:
    """Return whether an address belongs to one of the networks of trusted proxies."""
    address = parse_address(text) if trusted else None
    return address is not None and any(address in network for network in trusted)


def client_address(peer: str, forwarded: str, trusted: Collection[Network]) -> str:
    """Return the address of the client of a request.

    Each proxy appends the address of its peer to ``X-Forwarded-For``. The last one that is not a trusted proxy is the
    client; the client itself sent the previous ones.

    Args:
        peer: the address of the peer of the connection.
        forwarded: the value of ``X-Forwarded-For``, or an empty string.
        trusted: the networks of the proxies.
    """
    hops = forwarded.split(",") if forwarded else []
    while hops and is_trusted(peer, trusted):
        address = parse_address(hops.pop())
        if address is None:
            break
        peer = str(address)
    return peer


class ClientAddress:
    """Replaces the address of a trusted proxy by the client's, and removes X-Forwarded-Proto of other peers.

    The access log of the server reads the address from the same environment (`watcher_site.gunicorn`).
    """

    FORWARDED_FOR, FORWARDED_PROTO = "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        values, trusted = request.META, settings.TRUSTED_PROXIES
        peer, forwarded = values.get("REMOTE_ADDR", ""), values.get(self.FORWARDED_FOR, "")
        if not (trusted and is_trusted(peer, trusted)):
            values.pop(self.FORWARDED_PROTO, None)
        elif forwarded:
            values["REMOTE_ADDR"] = client_address(peer, forwarded, trusted)
        return self.get_response(request)


class Compression(GZipMiddleware):
    """Compresses pages and static files, but not API responses, because these contain secrets (BREACH)."""

    TYPES = ("text/html", "text/css", "text/javascript", "image/svg+xml")

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_whole = response.status_code == HTTPStatus.OK
        if is_whole and response.headers.get("Content-Type", "").startswith(self.TYPES):
            return super().process_response(request, response)
        return response


class CacheControl:
    """Sets Cache-Control and Vary, so that no cache returns the response for one user to another."""

    CREDENTIALS = ("X-Auth-Token", "Authorization", "Cookie")

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        patch_vary_headers(response, self.CREDENTIALS)
        # Browsers may go back to a page of the console without a request; shared caches must not store it.
        response.setdefault("Cache-Control", "private" if request.path.startswith("/console") else "no-store")
        return response


class SlidingSession:
    """Ends a session `settings.SESSION_COOKIE_AGE` seconds after its last request.

    The time of a request is stored at most once in a hundredth of that time, to save queries.
    """

    KEY = "seen_at"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response, session = self.get_response(request), request.session
        # After an error, such as one of the database, the session may be unavailable as well.
        is_available = response.status_code < HTTPStatus.INTERNAL_SERVER_ERROR
        if is_available and session.accessed and self.is_of_person(session) and self.is_due(session):
            self.note(session)
        return response

    def is_of_person(self, session: Any) -> bool:
        return SESSION_KEY in session or KEYSTONE_KEY in session

    def is_due(self, session: Any) -> bool:
        return bool(time() - session.get(self.KEY, 0) >= settings.SESSION_COOKIE_AGE / 100)

    @classmethod
    def note(cls, session: Any) -> None:
        """Store the time of the last request in a session."""
        session[cls.KEY] = int(time())


class RequestId:
    """Gives each request an id, which is in its log events and its response.

    Sets the user who sent the request for everything that it does (`watcher_site.request_context.on_behalf_of`).
    """

    header = "x-openstack-request-id"
    # The key in the WSGI environment, where `RequestIds` of `watcher_site.configuration.log_filters` reads it.
    key = "watcher_site.request_id"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = request.META[self.key] = f"req-{uuid4()}"
        with bound_contextvars(request_id=request_id), on_behalf_of(partial(caller_of, request)):
            response = self.get_response(request)
        response[self.header] = request_id
        return response


class RetryAfter:
    """Removes Retry-After from responses to python-watcherclient, which `openstack optimize` uses.

    With this header, the client raises a TypeError for an error (except 413), instead of showing its message. Without
    it, the client repeats a request whose status was 503.
    """

    CLIENT = "python-watcherclient"

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if "Retry-After" in response and request.headers.get("User-Agent", "").startswith(self.CLIENT):
            del response["Retry-After"]
        return response


class ContentSecurityPolicy(CSPMiddleware):
    """Adds the content security policy of pages to responses without one."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response if HEADER in response else super().process_response(request, response)
