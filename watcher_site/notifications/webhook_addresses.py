"""Validation of webhook addresses: none of this machine or private networks, unless a setting allows them."""

import re
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from socket import getaddrinfo
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import requests
from django.conf import settings
from requests_hardened.ip_filter import InvalidIPAddress, filter_host
from requests_hardened.ip_filter_adapter import IPFilterAdapter

from watcher_site.database.text import require_storable
from watcher_site.models.notifications import URL_LENGTH
from watcher_site.notifications import messages
from watcher_site.refusals import Invalid
from watcher_site.validation import require_visible

PORTS = {"http": 80, "https": 443}
INVALID_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")
PRIVATE = "has a private address, and WATCHER_WEBHOOK_PRIVATE_ADDRESSES is false"
# The global unicast addresses (RFC 4291, 2.5.4). Addresses of NAT64 (RFC 6052), which contain an IPv4 address, are not
# among them.
GLOBAL_UNICAST = ip_network("2000::/3")


def checked_url(url: object) -> str:
    """Return a URL to which notifications may be sent. Each delivery validates its address again.

    Raises:
        Invalid: the URL is not valid; the message names the rule.
    """
    if not isinstance(url, str) or not 0 < len(url) <= URL_LENGTH:
        raise Invalid(messages.URL_LENGTH_RULE.fill(number=URL_LENGTH))
    require_storable("url", url)
    require_visible("url", url)
    parts = parse_target(url)
    require_sendable(url, parts)
    if settings.WEBHOOK_PRIVATE_ADDRESSES:
        require_address(*parts)
    else:
        require_public(*parts)
    return url


class Target(NamedTuple):
    """The destination of a request."""

    host: str
    port: int


def parse_target(url: str) -> Target:
    """Return the destination of a URL. Raises: `Invalid`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise Invalid(messages.IPV6_WITHOUT_BRACKETS.text) from None
    if parts.scheme not in PORTS or any(character.isspace() for character in url):
        raise Invalid(messages.URL_BEGINNING.text)
    if parts.username is not None or parts.password is not None:
        raise Invalid(messages.URL_WITH_PASSWORD.text)
    if not parts.hostname:
        raise Invalid(messages.URL_WITHOUT_HOST.fill(scheme=parts.scheme))
    if parts.fragment:
        raise Invalid(messages.URL_WITH_FRAGMENT.text)
    return Target(parts.hostname, port_of(parts))


def port_of(parts: SplitResult) -> int:
    with suppress(ValueError):
        port = PORTS[parts.scheme] if parts.port is None else parts.port
        if port:
            return port
    raise Invalid(messages.URL_PORT.text)


def require_sendable(url: str, target: Target) -> None:
    """Refuse a URL that the HTTP library would change, such as by escaping a percent sign that begins no escape."""
    if stray := INVALID_ESCAPE.search(url):
        raise Invalid(messages.URL_ESCAPE.fill(escape=stray[0]))
    try:
        requests.Request("POST", url).prepare()
    except (requests.RequestException, UnicodeError, ValueError):
        raise Invalid(messages.URL_HOST.fill(host=target.host)) from None


def require_address(host: str, port: int) -> None:
    try:
        getaddrinfo(host, port)
    except (OSError, UnicodeError):
        raise Invalid(messages.URL_HOST_WITHOUT_ADDRESS.fill(host=host)) from None


def require_public(host: str, port: int) -> None:
    try:
        require_public_address(filter_host(host, port, allow_loopback=False))
    except InvalidIPAddress:
        raise Invalid(f"url: {PRIVATE}.") from None
    except (requests.RequestException, OSError, UnicodeError):
        raise Invalid(messages.URL_HOST_WITHOUT_ADDRESS.fill(host=host)) from None


def require_public_address(text: str) -> None:
    """Raise `InvalidIPAddress` unless an address is public. The library permits some others.

    Args:
        text: the address, in brackets if it is an IPv6 address.
    """
    address = ip_address(text.strip("[]"))
    if not is_public(address):
        raise InvalidIPAddress(address)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return address.is_global and not (address.is_multicast or address.is_reserved)
    if address.ipv4_mapped:
        return is_public(address.ipv4_mapped)
    # Relays of 6to4 and Teredo would forward to the IPv4 address in it.
    return address in GLOBAL_UNICAST and address.is_global and not (address.sixtofour or address.teredo)


class PublicAdapter(IPFilterAdapter):
    """Connects only to the address that was validated, and not to private ones."""

    def build_connection_pool_key_attributes(self, *arguments: Any, **named: Any) -> Any:
        host, pool = super().build_connection_pool_key_attributes(*arguments, **named)
        require_public_address(host["host"])
        return host, pool
