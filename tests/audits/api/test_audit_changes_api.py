"""PATCH on CONTINUOUS and EVENT audits: suspend, resume, other times."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse

from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from tests.api import Caller, fault
from tests.audits.clock import NOON, Clock
from tests.builders import make_audit, make_node

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def every(interval: str = "60", **fields: Any) -> Audit:
    return create_audit(audit_type="CONTINUOUS", goal="dummy", strategy="dummy", interval=interval, **fields)


def running(interval: str = "60", **fields: Any) -> Audit:
    """Return one whose first run was made."""
    make_node("compute1")
    audit = every(interval, **fields)
    DecisionEngine().run_next_audit()
    return audit


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def patch(api: Caller, audit: Audit, op: str = "replace", **values: Any) -> HttpResponse:
    steps = [{"op": op, "path": f"/{name}", "value": value} for name, value in values.items()]
    return api.patch(f"/audits/{audit.uuid}", steps)


def next_run(audit: Audit) -> datetime | None:
    return Audit.objects.get(pk=audit.pk).next_run_time


def test_a_created_one_shows_its_interval_times_and_next_run(api: Caller) -> None:
    body = {"audit_type": "CONTINUOUS", "goal": "dummy", "interval": "60", "end_time": "2026-11-22T01:00:00+01:00"}
    answer = api.post("/audits", body | {"start_time": "2026-11-21T13:00:00"})
    shown = answer.json()
    times = (shown["start_time"], shown["end_time"], shown["next_run_time"])
    assert (answer.status_code, shown["interval"]) == (201, "60")
    assert times == ("2026-11-21T13:00:00", "2026-11-22T00:00:00", "2026-11-21T13:00:00")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"interval": "0"}, "interval: must be from 1 to"),
        ({"interval": "-1"}, "interval: must be from 1 to"),
        ({"interval": " "}, "interval"),
        ({"interval": "0 0 31 2 *"}, "interval: the time '0 0 31 2 *' never comes."),
        ({"start_time": "soon"}, "start_time: must be a time in ISO 8601"),
        ({"end_time": "2026-11-21T12:00:00"}, "end_time: must not be in the past."),
        ({"start_time": "2026-11-23", "end_time": "2026-11-22"}, "end_time: must be after start_time."),
        ({"interval": "@yearly", "end_time": "2026-11-22"}, "interval: no run would come before end_time."),
    ],
)
def test_times_that_make_no_sense_are_refused(api: Caller, fields: dict[str, str], words: str) -> None:
    answer = api.post("/audits", {"audit_type": "CONTINUOUS", "goal": "dummy", "interval": "60"} | fields)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not Audit.objects.exists()


def test_a_person_suspends_and_resumes(api: Caller, clock: Clock) -> None:
    audit = running()
    suspended = patch(api, audit, state="SUSPENDED").json()
    clock.advance(90)
    resumed = patch(api, audit, state="ONGOING").json()
    assert (suspended["state"], suspended["status_message"]) == ("SUSPENDED", "Audit was suspended by user")
    assert (resumed["state"], resumed["status_message"], next_run(audit)) == ("ONGOING", None, after(120))


def test_a_person_cancels_a_series_between_its_runs(api: Caller) -> None:
    shown = patch(api, running(), state="CANCELLED").json()
    assert (shown["state"], shown["next_run_time"]) == ("CANCELLED", None)


@pytest.mark.parametrize(
    ("audit_type", "state", "requested"),
    [
        ("CONTINUOUS", "PENDING", "SUSPENDED"),
        ("CONTINUOUS", "PENDING", "ONGOING"),
        ("CONTINUOUS", "SUSPENDED", "CANCELLED"),
        ("CONTINUOUS", "SUCCEEDED", "ONGOING"),
        ("CONTINUOUS", "ONGOING", "ONGOING"),
        ("ONESHOT", "ONGOING", "SUSPENDED"),
        ("EVENT", "ONGOING", "SUSPENDED"),
        ("EVENT", "SUCCEEDED", "ONGOING"),
        ("EVENT", "SUCCEEDED", "CANCELLED"),
    ],
)
@pytest.mark.parametrize("op", ["add", "replace"])
def test_other_transitions_are_refused(api: Caller, audit_type: str, state: str, requested: str, op: str) -> None:
    audit = make_audit(audit_type=audit_type, state=state, interval="60")
    answer = patch(api, audit, op, state=requested)
    assert (answer.status_code, Audit.objects.get().state) == (400, state)
    assert f"State transition not allowed: ({state} -> {requested})" in fault(answer)


def test_a_suspended_one_can_be_deleted(api: Caller) -> None:
    audit = running()
    patch(api, audit, state="SUSPENDED")
    assert api.delete(f"/audits/{audit.uuid}").status_code == 204


@pytest.mark.parametrize(("interval", "seconds"), [("600", 600), ("15 * * * *", 900)])
def test_another_interval_counts_from_now(api: Caller, interval: str, seconds: float) -> None:
    audit = running()
    assert patch(api, audit, interval=interval).json()["interval"] == interval
    assert next_run(audit) == after(seconds)


def test_another_interval_of_one_that_never_ran_begins_at_once(api: Caller) -> None:
    audit = every("0 18 * * *")
    patch(api, audit, interval="600")
    assert next_run(audit) == NOON


def test_a_later_start_moves_the_next_run(api: Caller) -> None:
    audit = running()
    patch(api, audit, start_time="2026-11-21T15:00:00")
    assert next_run(audit) == after(3 * 3600)


def test_another_end_moves_no_run(api: Caller) -> None:
    audit = running()
    patch(api, audit, end_time="2026-11-21T15:00:00")
    assert next_run(audit) == after(60)


def test_an_end_before_the_next_run_lets_none_come(api: Caller) -> None:
    audit = running()
    patch(api, audit, end_time="2026-11-21T12:00:30")
    assert next_run(audit) is None


def test_an_end_that_is_taken_away_lets_runs_come_again(api: Caller) -> None:
    audit = running(end_time=after(30))
    before = next_run(audit)
    api.patch(f"/audits/{audit.uuid}", [{"op": "remove", "path": "/end_time"}])
    assert (before, next_run(audit)) == (None, after(60))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"interval": "0"}, "interval: must be from 1 to"),
        ({"interval": None}, "Interval of audit must be specified for CONTINUOUS."),
        ({"interval": 60}, "interval: must be a text."),
        ({"interval": "* * *"}, "nor a cron expression"),
        ({"start_time": "soon"}, "start_time: must be a time in ISO 8601"),
        ({"start_time": 7}, "start_time: must be a time in ISO 8601"),
        ({"end_time": "2020-01-01"}, "end_time: must not be in the past."),
        ({"start_time": "2026-11-23", "end_time": "2026-11-22"}, "end_time: must be after start_time."),
        ({"next_run_time": "2026-11-23"}, "internal"),
        ({"force": "yes"}, "force"),
        ({"auto_trigger": None}, "auto_trigger"),
    ],
)
def test_changes_that_make_no_sense_are_refused_and_nothing_is_written(
    api: Caller, values: dict[str, Any], words: str
) -> None:
    audit = running()
    answer = patch(api, audit, **{"name": "other", **values})
    found = Audit.objects.get(pk=audit.pk)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert (found.name, found.interval, found.next_run_time) == (audit.name, "60", after(60))


def test_an_interval_without_run_before_the_end_is_refused(api: Caller) -> None:
    answer = patch(api, running(end_time=after(3600)), interval="@yearly")
    assert fault(answer) == "interval: no run would come before end_time."


@pytest.mark.parametrize("name", ["start_time", "end_time"])
def test_times_are_not_acceptable_before_1_1(cloud_admin: User, name: str) -> None:
    audit = every()
    assert patch(Caller(cloud_admin, "1.0"), audit, **{name: "2030-01-01"}).status_code == 406
    assert patch(Caller(cloud_admin, "1.1"), audit, **{name: "2030-01-01"}).status_code == 200


@pytest.mark.parametrize("name", ["force", "auto_trigger"])
def test_wishes_may_be_changed_for_the_runs_to_come(api: Caller, name: str) -> None:
    assert patch(api, running(), **{name: True}).json()[name] is True


def test_a_finished_one_gets_no_next_run(api: Caller) -> None:
    audit = make_audit(audit_type="CONTINUOUS", state="CANCELLED", interval="60")
    patch(api, audit, interval="120")
    assert next_run(audit) is None


@pytest.mark.parametrize(
    ("audit_type", "state"),
    [("ONESHOT", "PENDING"), ("ONESHOT", "SUCCEEDED"), ("CONTINUOUS", "CANCELLED"), ("EVENT", "FAILED")],
)
@pytest.mark.parametrize("op", ["add", "replace"])
@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("interval", "2", "2"),
        ("start_time", "2020-01-01T01:00:00+01:00", "2020-01-01T00:00:00"),
        ("end_time", "2020-01-01T00:00:00", "2020-01-01T00:00:00"),
    ],
)
def test_up_to_1_7_an_audit_that_does_not_run_by_them_takes_an_interval_and_times(
    cloud_admin: User, audit_type: str, state: str, op: str, field: str, value: str, shown: str
) -> None:
    audit = make_audit(audit_type=audit_type, state=state)
    answer = patch(Caller(cloud_admin, "1.7"), audit, op, **{field: value})
    assert (answer.status_code, answer.json()[field], next_run(audit)) == (200, shown, None)


@pytest.mark.parametrize(
    ("field", "value"), [("interval", "0"), ("interval", "soon"), ("start_time", "soon"), ("end_time", 7)]
)
def test_up_to_1_7_an_interval_or_a_time_that_is_none_is_refused_for_every_audit(
    cloud_admin: User, field: str, value: object
) -> None:
    answer = patch(Caller(cloud_admin, "1.7"), make_audit(), **{field: value})
    assert (answer.status_code, field in fault(answer)) == (400, True)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("interval", "Interval of audit must not be set for ONESHOT."),
        ("start_time", "Start or End time of audit must not be set for ONESHOT."),
        ("end_time", "Start or End time of audit must not be set for ONESHOT."),
    ],
)
def test_from_1_8_on_a_oneshot_audit_has_no_interval_and_no_times(cloud_admin: User, field: str, words: str) -> None:
    value = "60" if field == "interval" else "2030-01-01"
    answer = patch(Caller(cloud_admin, "1.8"), make_audit(), **{field: value})
    assert (answer.status_code, fault(answer)) == (400, words)


@pytest.mark.parametrize(
    ("audit_type", "state"),
    [("CONTINUOUS", "SUCCEEDED"), ("CONTINUOUS", "FAILED"), ("CONTINUOUS", "CANCELLED"), ("EVENT", "FAILED")],
)
@pytest.mark.parametrize("field", ["interval", "start_time", "end_time"])
def test_from_1_8_on_a_finished_audit_takes_no_interval_and_no_times(
    cloud_admin: User, audit_type: str, state: str, field: str
) -> None:
    audit = make_audit(audit_type=audit_type, state=state, interval="60")
    answer = patch(Caller(cloud_admin, "1.8"), audit, **{field: "120" if field == "interval" else "2030-01-01"})
    assert (answer.status_code, fault(answer)) == (400, f"{field}: the audit is {state} and does not run again.")


def test_an_event_audit_that_waits_for_its_webhook_again_takes_times_from_1_8_on(cloud_admin: User) -> None:
    audit = make_audit(audit_type="EVENT", state="SUCCEEDED")
    answer = patch(Caller(cloud_admin, "1.8"), audit, end_time="2030-01-01")
    assert answer.json()["end_time"] == "2030-01-01T00:00:00"


def test_a_oneshot_audit_with_an_end_that_is_over_runs_all_the_same(api: Caller) -> None:
    audit = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    patch(api, audit, end_time="2020-01-01")
    DecisionEngine().run_next_audit()
    assert Audit.objects.get(pk=audit.pk).state == "SUCCEEDED"
