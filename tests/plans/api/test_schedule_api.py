"""Schedules of action plans through the API: start time, zone and maintenance window."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from plans.models import ActionPlan
from plans.planning import scheduling
from tests.api import Caller, fault
from tests.builders import make_plan

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)  # A Monday.
NIGHTS = {"opens": "22:00", "closes": "04:00"}
WRITTEN = {
    "opens": "22:00",
    "closes": "04:00",
    "first_day": None,
    "last_day": None,
    "weekdays": ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
}


@pytest.fixture
def api(cloud_admin: User, monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setattr(scheduling.timezone, "now", lambda: NOW)
    return Caller(cloud_admin, "1.12")


def shown(answer: Any) -> tuple[Any, ...]:
    row = answer.json()
    return answer.status_code, *(
        row[name] for name in ("state", "start_at", "zone", "window", "opens_at", "closes_at")
    )


def test_plan_is_started_for_a_time_in_a_zone(api: Caller) -> None:
    schedule = {"start_at": "2026-03-03T22:00", "zone": "Europe/Berlin"}
    answer = api.post(f"/action_plans/{make_plan().uuid}/start", schedule)
    moment = "2026-03-03T21:00:00+00:00"
    assert shown(answer) == (200, "PENDING", moment, "Europe/Berlin", None, moment, None)


def test_start_at_accepts_an_offset(api: Caller) -> None:
    answer = api.post(f"/action_plans/{make_plan().uuid}/start", {"start_at": "2026-03-03T22:00:00-05:00"})
    assert shown(answer)[2] == "2026-03-04T03:00:00+00:00"


def test_plan_is_started_with_a_window(api: Caller) -> None:
    answer = api.post(f"/action_plans/{make_plan().uuid}/start", {"zone": "Europe/Berlin", "window": NIGHTS})
    hours = ("2026-03-02T21:00:00+00:00", "2026-03-03T03:00:00+00:00")
    assert shown(answer) == (200, "PENDING", None, "Europe/Berlin", WRITTEN, *hours)


def test_window_opens_first_after_start_at(api: Caller) -> None:
    schedule = {"start_at": "2026-03-05T23:30", "window": NIGHTS}
    answer = api.post(f"/action_plans/{make_plan().uuid}/start", schedule)
    assert shown(answer)[-2:] == ("2026-03-05T23:30:00+00:00", "2026-03-06T04:00:00+00:00")


def test_ambiguous_local_time_means_its_first_occurrence(api: Caller) -> None:
    schedule = {"start_at": "2026-10-25T02:30", "zone": "Europe/Berlin"}
    assert shown(api.post(f"/action_plans/{make_plan().uuid}/start", schedule))[2] == "2026-10-25T00:30:00+00:00"


def test_schedule_made_before_the_start_is_kept_by_the_start(api: Caller) -> None:
    plan = make_plan()
    answer = api.post(f"/action_plans/{plan.uuid}/schedule", {"start_at": "2026-03-03T22:00"})
    assert shown(answer)[:3] == (200, "RECOMMENDED", "2026-03-03T22:00:00+00:00")
    assert shown(api.post(f"/action_plans/{plan.uuid}/start"))[1:3] == ("PENDING", "2026-03-03T22:00:00+00:00")


def test_omitted_fields_are_kept_and_null_removes_them(api: Caller) -> None:
    plan = make_plan()
    schedule = {"start_at": "2026-03-03T23:00", "zone": "Europe/Berlin", "window": NIGHTS}
    api.post(f"/action_plans/{plan.uuid}/start", schedule)
    answer = api.post(f"/action_plans/{plan.uuid}/schedule", {"window": None})
    moment = "2026-03-03T22:00:00+00:00"
    assert shown(answer) == (200, "PENDING", moment, "Europe/Berlin", None, moment, None)
    answer = api.post(f"/action_plans/{plan.uuid}/schedule", {"start_at": None})
    assert shown(answer) == (200, "PENDING", None, "Europe/Berlin", None, None, None)


def test_window_of_a_running_plan_can_be_changed_but_not_its_start_at(api: Caller) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    answer = api.post(f"/action_plans/{plan.uuid}/schedule", {"window": NIGHTS})
    assert shown(answer)[-2:] == ("2026-03-02T22:00:00+00:00", "2026-03-03T04:00:00+00:00")
    answer = api.post(f"/action_plans/{plan.uuid}/schedule", {"start_at": "2026-03-03T22:00"})
    assert (answer.status_code, fault(answer)) == (
        409,
        "start_at: cannot be changed any more: the action plan is ONGOING.",
    )


@pytest.mark.parametrize("state", ["CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_ended_or_cancelling_plan_cannot_be_scheduled(api: Caller, state: str) -> None:
    answer = api.post(f"/action_plans/{make_plan(state=state).uuid}/schedule", {"window": NIGHTS})
    assert answer.status_code == 409
    assert f"is {state}" in fault(answer)


def test_second_start_with_a_start_at_is_refused(api: Caller) -> None:
    plan = make_plan(state="PENDING")
    answer = api.post(f"/action_plans/{plan.uuid}/start", {"start_at": "2026-03-03T22:00"})
    assert (answer.status_code, fault(answer)) == (400, "Couldn't start when state is 'PENDING'.")
    assert ActionPlan.objects.get().start_at is None


@pytest.mark.parametrize(
    ("schedule", "rule"),
    [
        ({"start_at": "tomorrow"}, "start_at: must be a time in ISO 8601"),
        ({"start_at": "2026-03-01T12:00"}, "start_at: must not be in the past"),
        ({"start_at": "9999-12-31T23:59"}, "start_at: must be in a year from"),
        ({"start_at": "2026-03-29T02:30", "zone": "Europe/Berlin"}, "start_at: there is no 02:30 on 2026-03-29"),
        ({"zone": "Europe/Atlantis"}, "zone: there is no time zone 'Europe/Atlantis'"),
        ({"zone": "../../etc/passwd"}, "zone: there is no time zone"),
        ({"window": "nights"}, "window: must be an object"),
        ({"window": {"opens": "22:00"}}, "window.closes: missing. A window needs both opens and closes"),
        ({"window": {"closes": "22:00"}}, "window.opens: missing. A window needs both opens and closes"),
        (
            {"window": {"opens": "22:00", "closes": "25:00"}},
            "window.closes: must be a time such as 22:00, not '25:00'",
        ),
        ({"window": {"opens": "22:00", "closes": "22:00"}}, "window.closes: must differ from opens"),
        ({"window": {**NIGHTS, "weekdays": ["caturday"]}}, "window.weekdays: must be a list of one or more of monday"),
        ({"window": {**NIGHTS, "weekdays": []}}, "window.weekdays: must be a list of one or more of monday"),
        ({"window": {**NIGHTS, "weekdays": [["monday"]]}}, "window.weekdays: must be a list of one or more of monday"),
        ({"window": {**NIGHTS, "first_day": "soon"}}, "window.first_day: must be a day such as 2030-01-31"),
        (
            {"window": {**NIGHTS, "first_day": "2026-04-02", "last_day": "2026-04-01"}},
            "window.last_day: must not be before first_day: 2026-04-01 is before 2026-04-02.",
        ),
        ({"window": {**NIGHTS, "last_day": "2026-03-01"}}, "window.last_day: the window is over before"),
        ({"start_at": "2026-04-01", "window": {**NIGHTS, "last_day": "2026-03-30"}}, "window.last_day: the window is"),
        ({"window": {**NIGHTS, "until": "05:00"}}, "window: has no attribute until"),
        ({"when": "now"}, "Unknown attribute for argument schedule: when"),
        ([], "An object is expected"),
        ([1], "An object is expected"),
        ("", "An object is expected"),
        (0, "An object is expected"),
        (False, "An object is expected"),
    ],
)
@pytest.mark.parametrize("verb", ["start", "schedule"])
def test_invalid_schedule_is_refused(api: Caller, verb: str, schedule: Any, rule: str) -> None:
    plan = make_plan()
    answer = api.post(f"/action_plans/{plan.uuid}/{verb}", schedule)
    assert answer.status_code == 400
    assert rule in fault(answer)
    assert ActionPlan.objects.get().state == "RECOMMENDED"


def test_window_that_closes_for_the_last_time_today_is_accepted(api: Caller) -> None:
    schedule = {"window": {"opens": "11:00", "closes": "13:00", "first_day": "2026-03-02", "last_day": "2026-03-02"}}
    answer = api.post(f"/action_plans/{make_plan().uuid}/start", schedule)
    assert shown(answer)[-2:] == ("2026-03-02T12:00:00+00:00", "2026-03-02T13:00:00+00:00")


@pytest.mark.parametrize("verb", ["start", "schedule"])
def test_null_body_is_refused(api: Caller, verb: str) -> None:
    answer = api.client.generic(
        "POST",
        f"/v1/action_plans/{make_plan().uuid}/{verb}",
        data="null",
        content_type="application/json",
        headers=api.headers,
    )
    assert (answer.status_code, "An object is expected" in fault(answer)) == (400, True)
    assert ActionPlan.objects.get().state == "RECOMMENDED"


@pytest.mark.parametrize("body", [None, {}])
@pytest.mark.parametrize("version", ["1.0", "1.11", "1.12"])
def test_start_requires_no_body(cloud_admin: User, version: str, body: Any) -> None:
    answer = Caller(cloud_admin, version).post(f"/action_plans/{make_plan().uuid}/start", body)
    assert (answer.status_code, answer.json()["state"]) == (200, "PENDING")


def test_removed_zone_returns_to_utc(api: Caller) -> None:
    plan = make_plan()
    api.post(f"/action_plans/{plan.uuid}/schedule", {"zone": "Europe/Berlin", "window": NIGHTS})
    answer = api.post(f"/action_plans/{plan.uuid}/schedule", {"zone": None})
    assert shown(answer)[3:6] == ("UTC", WRITTEN, "2026-03-02T22:00:00+00:00")


@pytest.mark.parametrize("schedule", [{"start_at": "2040-01-01T00:00"}, {"zone": "UTC"}, {"window": NIGHTS}])
@pytest.mark.parametrize("verb", ["start", "schedule"])
def test_schedule_is_not_acceptable_before_microversion_1_12(
    cloud_admin: User, verb: str, schedule: dict[str, Any]
) -> None:
    answer = Caller(cloud_admin, "1.11").post(f"/action_plans/{make_plan().uuid}/{verb}", schedule)
    assert answer.status_code == 406
    assert fault(answer).endswith("API microversion 1.12 or higher is required.")
    assert ActionPlan.objects.get().state == "RECOMMENDED"


@pytest.mark.parametrize("body", [{"garbage": 1}, [], 0])
def test_unknown_attributes_of_a_start_are_ignored_before_microversion_1_12(cloud_admin: User, body: Any) -> None:
    answer = Caller(cloud_admin, "1.11").post(f"/action_plans/{make_plan().uuid}/start", body)
    assert (answer.json()["state"], "start_at" in answer.json()) == ("PENDING", False)


def test_readers_cannot_schedule_a_plan(reader: User) -> None:
    caller = Caller(reader, "1.12")
    assert caller.post(f"/action_plans/{make_plan().uuid}/schedule", {"zone": "UTC"}).status_code == 403


def test_schedule_of_a_deleted_plan_returns_404(api: Caller) -> None:
    plan = make_plan()
    plan.remove()
    assert api.post(f"/action_plans/{plan.uuid}/schedule", {"zone": "UTC"}).status_code == 404


def test_schedule_sets_updated_at(api: Caller) -> None:
    plan = make_plan(updated_at=timezone.now() - timedelta(days=3))
    api.post(f"/action_plans/{plan.uuid}/schedule", {"zone": "Europe/Berlin"})
    assert ActionPlan.objects.get().updated_at != plan.updated_at


EXPIRED_WINDOW = {
    "zone": "UTC",
    "window": {**NIGHTS, "last_day": "2026-02-01"},
    "closes_at": datetime(2026, 2, 2, 4, tzinfo=UTC),
}


@pytest.mark.parametrize("version", ["1.0", "1.12"])
def test_plan_with_an_expired_window_is_not_started(api: Caller, cloud_admin: User, version: str) -> None:
    plan = make_plan(**EXPIRED_WINDOW)
    answer = Caller(cloud_admin, version).post(f"/action_plans/{plan.uuid}/start")
    assert (answer.status_code, ActionPlan.objects.get().state) == (409, "RECOMMENDED")
    assert "the maintenance window" in fault(answer)


def test_plan_with_an_expired_window_is_started_with_another_window(api: Caller) -> None:
    answer = api.post(f"/action_plans/{make_plan(**EXPIRED_WINDOW).uuid}/start", {"window": NIGHTS})
    assert shown(answer)[:2] == (200, "PENDING")


def test_plan_whose_window_opens_again_is_started(api: Caller) -> None:
    plan = make_plan(**{**EXPIRED_WINDOW, "window": NIGHTS})
    assert shown(api.post(f"/action_plans/{plan.uuid}/start"))[:2] == (200, "PENDING")
