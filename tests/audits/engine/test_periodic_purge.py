"""A decision engine purges at intervals: by the ages in the settings alone, one engine at a time, between audits."""

from collections.abc import Iterator
from datetime import timedelta
from math import inf
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone
from knox.models import get_token_model
from pytest_django import Settings
from structlog.testing import capture_logs

from audits import purging
from audits.engine import purge
from audits.engine.engine import DecisionEngine
from audits.models import Audit, PeriodicPurge
from audits.operations.creation import create_audit
from plans.models import ActionPlan
from tests.builders import make_audit, make_plan
from tests.races import Race, rounds
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
INTERVAL = timedelta(hours=24)


def make_due() -> None:
    PeriodicPurge.current()
    PeriodicPurge.objects.update(ended_at=timezone.now() - INTERVAL)


def make_old_history(number: int = 1) -> None:
    entries = HistoryEntry.objects.bulk_create([HistoryEntry(deed="user.login") for _ in range(number)])
    old = timezone.now() - timedelta(days=366)
    HistoryEntry.objects.filter(pk__in=[entry.pk for entry in entries]).update(created_at=old)


def old_entries() -> int:
    return HistoryEntry.objects.filter(deed="user.login").count()


def is_held() -> bool:
    return PeriodicPurge.objects.get().holder is not None


def purge_logs(lines: list[Any]) -> list[Any]:
    return [line["removed"] for line in lines if line["event"] == "purge ended"]


@pytest.fixture(autouse=True)
def _long_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Complete a purge in one step, however busy the machine is."""
    monkeypatch.setattr(purge, "SLICE", inf)


@pytest.fixture
def engine() -> DecisionEngine:
    return DecisionEngine()


def test_due_purge_removes_history_by_age_and_logs_and_records_the_numbers(engine: DecisionEngine) -> None:
    make_due()
    make_old_history(2)
    with capture_logs() as lines:
        engine.step()
    assert (purge_logs(lines), old_entries()) == ([{"History": 2}], 0)
    entry = HistoryEntry.objects.get()
    assert (entry.deed, entry.user, entry.details) == ("database.purge", "", {"History": 2})


def test_purge_without_rows_to_remove_is_not_recorded(engine: DecisionEngine) -> None:
    make_due()
    with capture_logs() as lines:
        engine.step()
    assert (purge_logs(lines), HistoryEntry.objects.count()) == ([{}], 0)


def test_first_purge_of_a_site_begins_after_an_interval(engine: DecisionEngine) -> None:
    make_old_history()
    engine.step()
    assert old_entries() == 1


def test_next_purge_begins_after_an_interval(engine: DecisionEngine) -> None:
    make_due()
    engine.step()
    make_old_history()
    engine.purge.next_claim = 0.0
    engine.step()
    assert old_entries() == 1


def test_interval_of_0_means_never(engine: DecisionEngine, settings: Settings) -> None:
    settings.PURGE_INTERVAL = timedelta(0)
    make_due()
    make_old_history()
    engine.step()
    assert old_entries() == 1


def test_expired_tokens_and_sessions_are_removed(engine: DecisionEngine, stranger: User) -> None:
    now = timezone.now()
    for hours in (-1, 1):
        get_token_model().objects.create(stranger, expiry=timedelta(hours=hours))
        Session.objects.create(session_key=f"key {hours}", expire_date=now + timedelta(hours=hours))
    make_due()
    engine.step()
    assert (get_token_model().objects.count(), Session.objects.get().session_key) == (1, "key 1")


def test_expired_tokens_and_sessions_are_removed_in_batches(stranger: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purging, "BATCH", 2)
    for number in range(3):
        get_token_model().objects.create(stranger, expiry=timedelta(hours=-1))
        Session.objects.create(session_key=f"key {number}", expire_date=timezone.now() - timedelta(hours=1))
    removed = {title: list(numbers) for title, numbers in purging.expired_kinds() if title in {"Tokens", "Sessions"}}
    assert removed == {"Tokens": [2, 1], "Sessions": [2, 1]}


def make_deleted_plan() -> ActionPlan:
    plan = make_plan({"a": []}, state="SUCCEEDED")
    before = timezone.now() - timedelta(days=3650)
    ActionPlan.objects.filter(pk=plan.pk).update(created_at=before, end_time=before, deleted_at=before)
    return plan


def test_deleted_objects_and_old_plans_are_kept_by_default(engine: DecisionEngine) -> None:
    deleted, ended = make_deleted_plan(), make_deleted_plan()
    ActionPlan.objects.filter(pk=ended.pk).update(deleted_at=None)
    make_due()
    engine.step()
    assert set(ActionPlan.objects.all()) == {deleted, ended}


def test_deleted_objects_are_removed_by_their_age(engine: DecisionEngine, settings: Settings) -> None:
    settings.DELETED_AGE = timedelta(days=90)
    make_deleted_plan()
    young = make_plan(state="SUCCEEDED")
    young.remove()
    make_due()
    engine.step()
    assert ActionPlan.objects.get() == young


def test_plan_without_an_audit_is_kept_by_the_age_of_deleted_objects(
    engine: DecisionEngine, settings: Settings
) -> None:
    settings.DELETED_AGE = timedelta(days=90)
    plan = make_deleted_plan()
    ActionPlan.objects.update(deleted_at=None)
    make_due()
    engine.step()
    assert ActionPlan.objects.get() == plan


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove one row in each step."""
    monkeypatch.setattr(purging, "BATCH", 1)
    monkeypatch.setattr(purge, "SLICE", 0)
    make_due()
    make_old_history(3)


def test_audits_run_between_the_batches_of_a_purge(slow: None, engine: DecisionEngine) -> None:
    engine.step()
    audit = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    engine.step()
    assert (Audit.objects.get(pk=audit.pk).state, is_held()) == ("SUCCEEDED", True)


def test_purge_in_progress_is_not_idle(slow: None, engine: DecisionEngine) -> None:
    engine.step()
    assert not engine.is_idle
    while engine.purge.is_running:
        engine.step()
    assert (engine.is_idle, old_entries()) == (True, 0)


def test_one_engine_purges_at_a_time(slow: None, engine: DecisionEngine) -> None:
    engine.step()
    other = DecisionEngine()
    other.step()
    assert (engine.purge.is_running, other.purge.is_running) == (True, False)


def test_engine_that_stops_removes_no_more_and_releases_the_purge(
    engine: DecisionEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purging, "BATCH", 1)
    make_due()
    make_old_history(3)
    engine.stopping = True
    engine.step()
    engine.stop()
    assert (old_entries() > 0, is_held()) == (True, False)
    other = DecisionEngine()
    other.step()
    assert old_entries() == 0


def test_purge_of_a_lost_engine_is_taken_over_when_its_claim_expires(slow: None, engine: DecisionEngine) -> None:
    engine.step()
    PeriodicPurge.objects.update(held_until=timezone.now() - timedelta(seconds=1))
    other = DecisionEngine()
    other.step()
    engine.step()
    assert (engine.purge.is_running, other.purge.is_running) == (False, True)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> None:
    """Fail the removal of plans, of which one is old enough."""

    def fail(*_: Any) -> Iterator[int]:
        raise ValueError("broken")

    monkeypatch.setattr(purging, "remove_plans", fail)
    settings.DELETED_AGE = timedelta(days=90)
    make_deleted_plan()
    make_due()


def test_error_in_one_kind_of_rows_does_not_keep_the_rows_of_others(broken: None, engine: DecisionEngine) -> None:
    make_old_history()
    with capture_logs() as lines:
        engine.step()
    assert (old_entries(), ActionPlan.objects.count()) == (0, 1)
    assert [(line["event"], line.get("kind")) for line in lines if line["log_level"] == "error"] == [
        ("rows could not be purged", "Action Plans and Actions"),
        ("task of the decision engine failed", None),
    ]
    assert (purge_logs(lines), HistoryEntry.objects.get().details) == ([], {"History": 1})


def test_audit_stays_with_its_plan_that_cannot_be_removed(broken: None, engine: DecisionEngine) -> None:
    audit = make_audit(state="SUCCEEDED")
    Audit.objects.update(deleted_at=timezone.now() - timedelta(days=91))
    ActionPlan.objects.update(audit=audit)
    engine.step()
    assert ActionPlan.objects.get().audit == audit


def test_error_is_logged_and_the_next_purge_is_due_after_the_interval(broken: None, engine: DecisionEngine) -> None:
    audit = create_audit(audit_type="ONESHOT", goal="dummy", strategy="dummy")
    with capture_logs() as lines:
        engine.step()
    errors = [line["event"] for line in lines if line["log_level"] == "error"]
    assert errors == ["rows could not be purged", "task of the decision engine failed"]
    assert (Audit.objects.get(pk=audit.pk).state, PeriodicPurge.claim(INTERVAL)) == ("SUCCEEDED", None)


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_claims_one_succeeds() -> None:
    with Race() as race:
        for _ in range(rounds(30)):
            make_due()
            PeriodicPurge.objects.update(holder=None, held_until=None)
            claims = race.run(*[lambda: PeriodicPurge.claim(INTERVAL) is not None] * 2)
            assert sorted(claims) == [False, True]
