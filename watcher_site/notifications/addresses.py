"""Where webhooks may lead: to no address of this machine or its networks, unless a setting says so."""

from urllib.parse import urlsplit

import requests
from django.conf import settings
from requests_hardened.ip_filter import InvalidIPAddress, filter_host

from watcher_site.models.notifications import URL_LENGTH
from watcher_site.refusals import Invalid
from watcher_site.storable import require_storable

PORTS = {"http": 80, "https": 443}
PRIVATE = "leads to a private address, and WATCHER_WEBHOOK_PRIVATE_ADDRESSES is off"


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
        raise Invalid("url: must hold no user and no password: everybody reads it who may see the subscription.")
    if parts.fragment:
        raise Invalid("url: must hold no fragment (#).")
    return scheme, host, port


def require_public(host: str, port: int) -> None:
    try:
        filter_host(host, port, allow_loopback=False)
    except InvalidIPAddress:
        raise Invalid(f"url: {PRIVATE}.") from None
    except (requests.RequestException, OSError, UnicodeError):
        raise Invalid(f"url: the host {host} has no address.") from None
