"""Webhooks."""

import pytest

from tests.api import Caller, fault
from tests.builders import make_audit

pytestmark = pytest.mark.django_db


def test_only_event_audits_are_triggered(api: Caller) -> None:
    answer = api.post(f"/webhooks/{make_audit().uuid}", {})
    assert answer.status_code == 400
    assert fault(answer) == "Audit type ONESHOT is disallowed."


def test_a_body_is_required(api: Caller) -> None:
    answer = api.post(f"/webhooks/{make_audit().uuid}")
    assert answer.status_code == 400
    assert fault(answer) == 'Missing argument: "body"'


def test_an_unknown_audit_is_404(api: Caller) -> None:
    answer = api.post("/webhooks/abc", {})
    assert answer.status_code == 404
    assert fault(answer) == "Audit abc could not be found"


def test_a_webhook_cannot_be_read(api: Caller) -> None:
    assert api.get("/webhooks/abc").status_code == 405
