"""The timeout of webhooks whose receivers respond slowly or without an end."""

import time

import pytest
from pytest_django import Settings

from tests.watcher_site.notifications.receiver import dripping
from tests.watcher_site.notifications.relaying import notify, subscribe_to
from watcher_site.notifications.receivers import Unreachable
from watcher_site.notifications.webhooks import WebhookReceiver

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def short(settings: Settings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES, settings.WEBHOOK_TIMEOUT = True, 0.2


def test_timeout_covers_a_status_line_sent_slowly() -> None:
    with dripping(b"HTTP/1.1 ") as url:
        receiver, began = WebhookReceiver(subscribe_to(url)), time.monotonic()
        with pytest.raises(Unreachable, match=r"within 0\.2 seconds"):
            receiver.send(notify()[0])
    assert time.monotonic() - began < 3


def test_response_with_incomplete_headers_is_a_failed_delivery() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nX-Drop: ") as url, pytest.raises(Unreachable, match=r"within 0\.2 seconds"):
        WebhookReceiver(subscribe_to(url)).send(notify()[0])


def test_endless_response_body_does_not_fail_the_delivery() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n") as url:
        receiver, began = WebhookReceiver(subscribe_to(url)), time.monotonic()
        receiver.send(notify()[0])
    assert time.monotonic() - began < 3


def test_broken_response_body_does_not_fail_the_delivery() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n") as url:
        WebhookReceiver(subscribe_to(url)).send(notify()[0])
