"""PATCH of CONTINUOUS and EVENT audits: state, interval, start and end time."""

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


def continuous_audit(interval: str = "60", **fields: Any) -> Audit:
    return create_audit(audit_type="CONTINUOUS", goal="dummy", strategy="dummy", interval=interval, **fields)


def audit_after_first_run(interval: str = "60", **fields: Any) -> Audit:
    """Return a CONTINUOUS audit after its first run."""
    make_node("compute1")
    audit = continuous_audit(interval, **fields)
    DecisionEngine().run_next_audit()
    return audit


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def patch(api: Caller, audit: Audit, op: str = "replace", **values: Any) -> HttpResponse:
    steps = [{"op": op, "path": f"/{name}", "value": value} for name, value in values.items()]
    return api.patch(f"/audits/{audit.uuid}", steps)


def next_run(audit: Audit) -> datetime | None:
    return Audit.objects.get(pk=audit.pk).next_run_time


def test_created_audit_shows_its_interval_times_and_next_run_time(api: Caller) -> None:
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
        ({"interval": "@yearly", "end_time": "2026-11-22"}, "interval: there is no run before end_time."),
    ],
)
def test_invalid_interval_or_times_of_a_new_audit_are_refused(api: Caller, fields: dict[str, str], words: str) -> None:
    answer = api.post("/audits", {"audit_type": "CONTINUOUS", "goal": "dummy", "interval": "60"} | fields)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert not Audit.objects.exists()


def test_audit_is_suspended_and_resumed(api: Caller, clock: Clock) -> None:
    audit = audit_after_first_run()
    suspended = patch(api, audit, state="SUSPENDED").json()
    clock.advance(90)
    resumed = patch(api, audit, state="ONGOING").json()
    assert (suspended["state"], suspended["status_message"]) == ("SUSPENDED", "Audit was suspended by user")
    assert (resumed["state"], resumed["status_message"], next_run(audit)) == ("ONGOING", None, after(120))


def test_continuous_audit_is_cancelled_between_runs(api: Caller) -> None:
    shown = patch(api, audit_after_first_run(), state="CANCELLED").json()
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
def test_invalid_state_transition_is_refused(
    api: Caller, audit_type: str, state: str, requested: str, op: str
) -> None:
    audit = make_audit(audit_type=audit_type, state=state, interval="60")
    answer = patch(api, audit, op, state=requested)
    assert (answer.status_code, Audit.objects.get().state) == (400, state)
    assert f"State transition not allowed: ({state} -> {requested})" in fault(answer)


def test_suspended_audit_is_deleted(api: Caller) -> None:
    audit = audit_after_first_run()
    patch(api, audit, state="SUSPENDED")
    assert api.delete(f"/audits/{audit.uuid}").status_code == 204


@pytest.mark.parametrize(("interval", "seconds"), [("600", 600), ("15 * * * *", 900)])
def test_changed_interval_counts_from_now(api: Caller, interval: str, seconds: float) -> None:
    audit = audit_after_first_run()
    assert patch(api, audit, interval=interval).json()["interval"] == interval
    assert next_run(audit) == after(seconds)


def test_changed_interval_of_an_audit_before_its_first_run_starts_now(api: Caller) -> None:
    audit = continuous_audit("0 18 * * *")
    patch(api, audit, interval="600")
    assert next_run(audit) == NOON


def test_later_start_time_moves_the_next_run(api: Caller) -> None:
    audit = audit_after_first_run()
    patch(api, audit, start_time="2026-11-21T15:00:00")
    assert next_run(audit) == after(3 * 3600)


def test_end_time_after_the_next_run_keeps_the_next_run(api: Caller) -> None:
    audit = audit_after_first_run()
    patch(api, audit, end_time="2026-11-21T15:00:00")
    assert next_run(audit) == after(60)


def test_end_time_before_the_next_run_clears_next_run_time(api: Caller) -> None:
    audit = audit_after_first_run()
    patch(api, audit, end_time="2026-11-21T12:00:30")
    assert next_run(audit) is None


def test_removed_end_time_restores_the_next_run(api: Caller) -> None:
    audit = audit_after_first_run(end_time=after(30))
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
def test_invalid_patch_is_refused_and_changes_no_field(api: Caller, values: dict[str, Any], words: str) -> None:
    audit = audit_after_first_run()
    answer = patch(api, audit, **{"name": "other", **values})
    found = Audit.objects.get(pk=audit.pk)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert (found.name, found.interval, found.next_run_time) == (audit.name, "60", after(60))


def test_interval_without_a_run_before_end_time_is_refused(api: Caller) -> None:
    answer = patch(api, audit_after_first_run(end_time=after(3600)), interval="@yearly")
    assert fault(answer) == "interval: there is no run before end_time."


@pytest.mark.parametrize("name", ["start_time", "end_time"])
def test_patch_of_times_before_1_1_is_not_acceptable(cloud_admin: User, name: str) -> None:
    audit = continuous_audit()
    assert patch(Caller(cloud_admin, "1.0"), audit, **{name: "2030-01-01"}).status_code == 406
    assert patch(Caller(cloud_admin, "1.1"), audit, **{name: "2030-01-01"}).status_code == 200


@pytest.mark.parametrize("name", ["force", "auto_trigger"])
def test_force_and_auto_trigger_of_a_running_audit_are_changed(api: Caller, name: str) -> None:
    assert patch(api, audit_after_first_run(), **{name: True}).json()[name] is True


def test_changed_interval_of_a_cancelled_audit_sets_no_next_run_time(api: Caller) -> None:
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
def test_up_to_1_7_interval_and_times_of_oneshot_and_finished_audits_are_accepted(
    cloud_admin: User, audit_type: str, state: str, op: str, field: str, value: str, shown: str
) -> None:
    audit = make_audit(audit_type=audit_type, state=state)
    answer = patch(Caller(cloud_admin, "1.7"), audit, op, **{field: value})
    assert (answer.status_code, answer.json()[field], next_run(audit)) == (200, shown, None)


@pytest.mark.parametrize(
    ("field", "value"), [("interval", "0"), ("interval", "soon"), ("start_time", "soon"), ("end_time", 7)]
)
def test_up_to_1_7_invalid_interval_or_time_is_refused_for_a_oneshot_audit(
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
def test_from_1_8_on_interval_and_times_of_a_oneshot_audit_are_refused(
    cloud_admin: User, field: str, words: str
) -> None:
    value = "60" if field == "interval" else "2030-01-01"
    answer = patch(Caller(cloud_admin, "1.8"), make_audit(), **{field: value})
    assert (answer.status_code, fault(answer)) == (400, words)


@pytest.mark.parametrize(
    ("audit_type", "state"),
    [("CONTINUOUS", "SUCCEEDED"), ("CONTINUOUS", "FAILED"), ("CONTINUOUS", "CANCELLED"), ("EVENT", "FAILED")],
)
@pytest.mark.parametrize("field", ["interval", "start_time", "end_time"])
def test_from_1_8_on_interval_and_times_of_a_finished_audit_are_refused(
    cloud_admin: User, audit_type: str, state: str, field: str
) -> None:
    audit = make_audit(audit_type=audit_type, state=state, interval="60")
    answer = patch(Caller(cloud_admin, "1.8"), audit, **{field: "120" if field == "interval" else "2030-01-01"})
    assert (answer.status_code, fault(answer)) == (400, f"{field}: the audit is {state} and does not run again.")


def test_from_1_8_on_end_time_of_a_succeeded_event_audit_is_changed(cloud_admin: User) -> None:
    audit = make_audit(audit_type="EVENT", state="SUCCEEDED")
    answer = patch(Caller(cloud_admin, "1.8"), audit, end_time="2030-01-01")
    assert answer.json()["end_time"] == "2030-01-01T00:00:00"


def test_end_time_of_a_oneshot_audit_does_not_prevent_its_run(api: Caller) -> None:
    audit = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    patch(api, audit, end_time="2020-01-01")
    DecisionEngine().run_next_audit()
    assert Audit.objects.get(pk=audit.pk).state == "SUCCEEDED"


@pytest.mark.parametrize(
    ("name", "state", "requested"),
    [
        ("abandon", "ONGOING", "CANCELLED"),
        ("suspend_series", "ONGOING", "SUSPENDED"),
        ("resume_series", "SUSPENDED", "ONGOING"),
    ],
)
def test_change_of_an_audit_that_is_deleted_at_the_same_time_is_refused_with_404(
    api: Caller, monkeypatch: pytest.MonkeyPatch, name: str, state: str, requested: str
) -> None:
    audit = make_audit(audit_type="CONTINUOUS", state=state, interval="60")
    perform = getattr(Audit, name)

    def delete_and_perform(late: Audit) -> None:
        Audit.objects.filter(pk=late.pk).soft_delete()
        perform(late)

    monkeypatch.setattr(Audit, name, delete_and_perform)
    answer = patch(api, audit, state=requested)
    assert (answer.status_code, fault(answer)) == (404, f"Audit {audit.uuid} could not be found")
