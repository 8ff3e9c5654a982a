"""Webhooks to private addresses are refused unless a setting allows them."""

import pytest
from pytest_django import Settings

from watcher_site.notifications.webhook_addresses import checked_url
from watcher_site.refusals import Invalid

PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "224.0.0.1",
    "240.0.0.1",
    "[::1]",
    "[::ffff:10.0.0.1]",
    "[::10.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b:1::1]",
    "[2002:a00:1::1]",
    "[2001:0:a00:1::1]",
    "[fc00::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff0e::1]",
    "[4000::1]",
]


@pytest.fixture(autouse=True)
def strict(settings: Settings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = False


@pytest.mark.parametrize("host", PRIVATE)
def test_url_to_a_private_address_is_refused(host: str) -> None:
    with pytest.raises(Invalid, match="private address"):
        checked_url(f"http://{host}/")


@pytest.mark.parametrize("host", ["1.1.1.1", "[2606:4700:4700::1111]", "[::ffff:1.1.1.1]"])
def test_url_to_a_public_address_is_accepted(host: str) -> None:
    assert checked_url(f"http://{host}/") == f"http://{host}/"
