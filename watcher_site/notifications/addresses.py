"""Where webhooks may lead: to no address of this machine or its networks, unless a setting says so."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests_hardened.ip_filter import InvalidIPAddress, filter_host
from requests_hardened.ip_filter_adapter import IPFilterAdapter

from watcher_site.models.notifications import URL_LENGTH
from watcher_site.refusals import Invalid
from watcher_site.storable import require_storable

PORTS = {"http": 80, "https": 443}
PRIVATE = "leads to a private address, and WATCHER_WEBHOOK_PRIVATE_ADDRESSES is off"
# What the Internet routes to single machines (RFC 4291, 2.5.4). Those of NAT64, which hold one of IPv4 (RFC 6052),
# are outside.
GLOBAL_UNICAST = ip_network("2000::/3")


def checked_url(url: object) -> str:
    """Return a URL that notifications may be sent to, as far as can be said now: each delivery looks again.

    Raises:
        Invalid: the message names the field and the rule.
    """
    if not isinstance(url, str) or not 0 < len(url) <= URL_LENGTH:
        raise Invalid(f"url: must be a text of 1 to {URL_LENGTH} characters.")
    require_storable("url", url)
    scheme, host, port = split(url)
    if not settings.WEBHOOK_PRIVATE_ADDRESSES:
        require_public(host, port or PORTS[scheme])
    return url


def split(url: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        raise Invalid("url: must be a URL.") from None
    if scheme not in PORTS or not host or port == 0 or any(letter.isspace() for letter in url):
        raise Invalid("url: must begin with https:// or http:// and a host, and hold no blanks.")
    if parts.username is not None or parts.password is not None:
        raise Invalid("url: must hold no user and no password: everybody reads it who may change the subscription.")
    if parts.fragment:
        raise Invalid("url: must hold no fragment (#).")
    return scheme, host, port


def require_public(host: str, port: int) -> None:
    try:
        require_public_address(filter_host(host, port, allow_loopback=False))
    except InvalidIPAddress:
        raise Invalid(f"url: {PRIVATE}.") from None
    except (requests.RequestException, OSError, UnicodeError):
        raise Invalid(f"url: the host {host} has no address.") from None


def require_public_address(text: str) -> None:
    """Raise `InvalidIPAddress` unless an address is one of the Internet's: the library lets some others pass.

    Args:
        text: it, in brackets if it is one of IPv6.
    """
    address = ip_address(text.strip("[]"))
    if not is_public(address):
        raise InvalidIPAddress(address)


def is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return address.is_global and not (address.is_multicast or address.is_reserved)
    if address.ipv4_mapped:
        return is_public(address.ipv4_mapped)
    # Relays of 6to4 and Teredo would send on to an IPv4 address that it holds.
    return address in GLOBAL_UNICAST and address.is_global and not (address.sixtofour or address.teredo)


class PublicAdapter(IPFilterAdapter):
    """Connects to the very address that was looked at, and to no private one."""

    def build_connection_pool_key_attributes(self, *arguments: Any, **named: Any) -> Any:
        host, pool = super().build_connection_pool_key_attributes(*arguments, **named)
        require_public_address(host["host"])
        return host, pool
