"""The client address and the scheme of a request, behind a proxy or not."""

from ipaddress import ip_network
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from watcher_site.models import HistoryEntry
from watcher_site.web.middleware import client_address

PROXIES = [ip_network("127.0.0.1"), ip_network("10.1.0.0/16"), ip_network("2001:db8::/64")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("127.0.0.1", "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "198.51.100.1, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
        ("127.0.0.1", "10.1.9.9,10.1.2.3", "10.1.9.9"),
        ("2001:db8::1", "2001:db8:1::7", "2001:db8:1::7"),
        ("::ffff:127.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("127.0.0.1", "203.0.113.7, nonsense", "127.0.0.1"),
        ("127.0.0.1", ",", "127.0.0.1"),
        ("", "203.0.113.7", ""),
    ],
)
def test_client_address_is_the_last_address_that_is_no_trusted_proxy(peer: str, forwarded: str, address: str) -> None:
    assert client_address(peer, forwarded, PROXIES) == address


@pytest.mark.django_db
@pytest.mark.parametrize(("trusted", "address"), [(PROXIES, "203.0.113.7"), ([], "127.0.0.1")])
def test_history_records_the_address_forwarded_by_a_trusted_proxy(
    cloud_admin: User, monkeypatch: pytest.MonkeyPatch, trusted: list[Any], address: str
) -> None:
    monkeypatch.setattr(settings, "TRUSTED_PROXIES", trusted)
    client = Client(REMOTE_ADDR="127.0.0.1", HTTP_X_FORWARDED_FOR="203.0.113.7")
    client.get("/v1/goals", headers={"X-Auth-Token": "made-up"})
    assert HistoryEntry.objects.get().details == {"address": address}


@pytest.mark.parametrize(("peer", "status"), [("10.1.0.1", 200), ("203.0.113.9", 301)])
def test_scheme_is_accepted_only_from_a_trusted_proxy(monkeypatch: pytest.MonkeyPatch, peer: str, status: int) -> None:
    monkeypatch.setattr(settings, "TRUSTED_PROXIES", PROXIES)
    monkeypatch.setattr(settings, "SECURE_SSL_REDIRECT", True)
    monkeypatch.setattr(settings, "SECURE_PROXY_SSL_HEADER", ("HTTP_X_FORWARDED_PROTO", "https"))
    client = Client(REMOTE_ADDR=peer, HTTP_X_FORWARDED_PROTO="https")
    assert client.get("/").status_code == status
