"""The documented verification of signatures, applied to a request that the site sent."""

from typing import Any

import pytest
from pytest_django import Settings

from tests.documentation.blocks import read_text
from tests.watcher_site.notifications.receiver import receiving
from tests.watcher_site.notifications.relaying import notify, subscribe_to
from watcher_site.notifications.webhooks import WebhookReceiver, unseal_secret


@pytest.mark.django_db
def test_documented_verification_accepts_only_genuine_requests(settings: Settings) -> None:
    settings.WEBHOOK_PRIVATE_ADDRESSES = True
    code = read_text("docs/notifications.md", "### To webhooks", language="python")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (our own documentation)
    with receiving() as receiver:
        subscription = subscribe_to(receiver.url)
        WebhookReceiver(subscription).send(notify()[0])
    [(headers, body)] = receiver.requests
    is_genuine, secret, signature = names["is_genuine"], unseal_secret(subscription), headers["webhook-signature"]
    assert is_genuine(secret, headers, body)
    assert is_genuine(secret, headers | {"webhook-signature": f"v1,b3RoZXI= {signature}"}, body)
    assert not is_genuine(secret, headers, body + b" ")
    assert not is_genuine(secret, headers | {"webhook-id": "another"}, body)
    assert not is_genuine(secret, headers | {"webhook-timestamp": "1"}, body)
