"""Pages of CONTINUOUS and EVENT audits in the console: creation, next run, suspension and resumption."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from audits.models import Audit
from tests.audits.clock import NOON, Clock
from tests.builders import make_audit
from watcher_site.templatetags.console import until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def choose(client: Client, audit_type: str) -> str:
    query = {"goal": "dummy", "audit_type": audit_type}
    return client.get(reverse("audits:create"), query, headers={"HX-Request": "true"}).content.decode()


def create(client: Client, **fields: Any) -> str:
    form = {"goal": "dummy", "audit_type": "CONTINUOUS", "interval": "300", **fields}
    return client.post(reverse("audits:create"), form, follow=True).content.decode()


def page(client: Client, audit: Audit) -> str:
    return client.get(reverse("audits:detail", args=[audit.uuid])).content.decode()


def press(client: Client, verb: str, audit: Audit) -> str:
    return client.post(reverse(f"audits:{verb}", args=[audit.uuid]), follow=True).content.decode()


def continuous_audit(**columns: Any) -> Audit:
    columns = {"state": "ONGOING", "next_run_time": NOON + timedelta(minutes=5), **columns}
    return make_audit(audit_type="CONTINUOUS", interval="300", **columns)


@pytest.mark.parametrize(("audit_type", "asks"), [("CONTINUOUS", True), ("ONESHOT", False), ("EVENT", False)])
def test_form_has_time_fields_for_continuous_audits_only(administrator: Client, audit_type: str, asks: bool) -> None:
    text = choose(administrator, audit_type)
    assert [f'name="{name}"' in text for name in ("interval", "start_time", "end_time")] == [asks] * 3


def test_continuous_audit_is_created_with_times_in_utc(administrator: Client) -> None:
    text = create(administrator, start_time="2026-11-21T13:00", end_time="2026-11-22T13:00")
    audit = Audit.objects.get()
    assert "Audit created. A decision engine will run it on schedule." in text
    assert (audit.interval, audit.start_time, audit.end_time) == (
        "300",
        NOON + timedelta(hours=1),
        NOON + timedelta(hours=25),
    )


def test_event_audit_is_created_without_interval(administrator: Client) -> None:
    create(administrator, audit_type="EVENT")
    audit = Audit.objects.get()
    assert (audit.audit_type, audit.interval) == ("EVENT", None)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"interval": ""}, "This field is required."),
        ({"interval": "0"}, "interval: must be from 1 to"),
        ({"interval": "* * *"}, "nor a cron expression"),
        ({"start_time": "soon"}, "Enter a valid date/time."),
        ({"end_time": "2026-11-21T11:00"}, "end_time: must not be in the past."),
        ({"start_time": "2026-11-23T11:00", "end_time": "2026-11-22T11:00"}, "end_time: must be after start_time."),
        ({"audit_type": "SOMETIMES"}, "is not one of the available choices"),
        ({"interval": "\x00"}, "Null characters are not allowed."),
    ],
)
def test_invalid_value_is_reported_at_its_field(administrator: Client, fields: dict[str, str], words: str) -> None:
    text = create(administrator, **fields)
    assert words in text
    assert "alert-danger" not in text
    assert not Audit.objects.exists()


def test_page_shows_the_next_run(administrator: Client) -> None:
    text = page(administrator, continuous_audit())
    assert "in 5\xa0minutes" in text
    assert "2026-11-21 12:05:00 UTC" in text
    assert "300 seconds" in text


def test_list_shows_the_next_run(administrator: Client) -> None:
    continuous_audit()
    assert "in 5\xa0minutes" in administrator.get(reverse("audits:list")).content.decode()


def test_page_of_a_suspended_audit_shows_no_next_run(administrator: Client) -> None:
    assert "in 5\xa0minutes" not in page(administrator, continuous_audit(state="SUSPENDED"))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-30, ">now<"), (30, "in less than a minute"), (60, "in 1\xa0minute"), (7200, "in 2\xa0hours"), (None, "—")],
)
def test_future_time_is_shown_as_a_duration(seconds: float | None, words: str) -> None:
    assert words in until(None if seconds is None else NOON + timedelta(seconds=seconds))


def test_audit_is_suspended_and_resumed(administrator: Client) -> None:
    audit = continuous_audit()
    suspended = press(administrator, "suspend", audit)
    state = Audit.objects.get().state
    resumed = press(administrator, "resume", audit)
    assert ("Audit was suspended by user" in suspended, state) == (True, "SUSPENDED")
    assert ("Audit resumed." in resumed, Audit.objects.get().state) == (True, "ONGOING")


def test_resume_after_end_time_is_refused_with_the_reason(administrator: Client) -> None:
    text = press(administrator, "resume", continuous_audit(state="SUSPENDED", end_time=NOON))
    assert "The audit cannot be resumed" in text
    assert Audit.objects.get().state == "SUSPENDED"


@pytest.mark.parametrize(
    ("audit_type", "state", "verbs"),
    [
        ("CONTINUOUS", "PENDING", ["cancel"]),
        ("CONTINUOUS", "ONGOING", ["suspend", "cancel"]),
        ("CONTINUOUS", "SUSPENDED", ["resume", "delete"]),
        ("ONESHOT", "ONGOING", ["cancel"]),
        ("EVENT", "SUCCEEDED", ["delete"]),
    ],
)
def test_page_shows_the_buttons_of_allowed_transitions(
    administrator: Client, audit_type: str, state: str, verbs: list[str]
) -> None:
    text = page(administrator, make_audit(audit_type=audit_type, state=state, interval="300"))
    assert [verb for verb in ("suspend", "resume", "cancel", "delete") if f'id="{verb}"' in text] == verbs


@pytest.mark.parametrize("verb", ["suspend", "resume"])
def test_reader_sees_no_button_and_is_refused(client: Client, reader: User, verb: str) -> None:
    client.force_login(reader)
    audit = continuous_audit(state="ONGOING" if verb == "suspend" else "SUSPENDED")
    assert f'id="{verb}"' not in page(client, audit)
    assert client.post(reverse(f"audits:{verb}", args=[audit.uuid])).status_code == 403


def test_page_of_an_event_audit_shows_how_to_call_its_webhook(administrator: Client) -> None:
    audit = make_audit(audit_type="EVENT")
    text = page(administrator, audit)
    assert "curl -u alice -X POST" in text
    assert f"http://testserver/v1/webhooks/{audit.uuid}" in text


@pytest.mark.parametrize(("operation", "look"), [("suspend", "danger"), ("resume", "primary")])
def test_confirmation_is_red_only_for_an_operation_that_discards_results(
    administrator: Client, operation: str, look: str
) -> None:
    audit = make_audit(
        audit_type="CONTINUOUS", interval="300", state="ONGOING" if operation == "suspend" else "SUSPENDED"
    )
    text = administrator.get(reverse(f"audits:{operation}", args=[audit.uuid])).content.decode()
    assert f'class="btn btn-{look}"' in text
