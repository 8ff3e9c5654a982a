"""The counters and durations of plans, actions, audits, heartbeats and synchronizations in workers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from actions.models import Action
from actions.types.base import DONE, Answer, Outcome
from actions.types.nop import Nop
from audits.engine.engine import DecisionEngine
from cluster.drivers.base import CloudUnavailable
from cluster.operations.synchronization import synchronize
from plans.models import ActionPlan
from tests.builders import action, make_audit, make_plan
from tests.plans.inline import run_waiting
from tests.watcher_site.monitoring.samples import growth_of
from watcher_site.models import Service
from watcher_site.processes.worker import Heartbeat

pytestmark = pytest.mark.django_db
Committing = Callable[..., AbstractContextManager[Any]]


@pytest.fixture
def run(django_capture_on_commit_callbacks: Committing) -> Callable[[], None]:
    """Run all waiting plans, and the callbacks on commit."""

    def run_plans() -> None:
        with django_capture_on_commit_callbacks(execute=True):
            run_waiting()

    return run_plans


def fail(self: Nop) -> None:
    raise RuntimeError("broken")


def test_completed_action_is_counted_with_type_and_state(run: Callable[[], None]) -> None:
    make_plan({"a": [], "b": ["a"]}, state="PENDING")
    labels = {"action_type": "nop", "state": "SUCCEEDED"}
    with growth_of("watcher_action_duration_seconds_count", **labels) as growth:
        run()
    assert growth.value == 2


def test_failed_action_is_counted_as_failed(run: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nop, "execute", fail)
    make_plan({"a": []}, state="PENDING")
    with growth_of("watcher_action_duration_seconds_count", action_type="nop", state="FAILED") as growth:
        run()
    assert growth.value == 1


def test_plan_duration_is_measured_at_its_end(run: Callable[[], None]) -> None:
    make_plan({"a": []}, state="PENDING")
    with growth_of("watcher_action_plan_duration_seconds_count", state="SUCCEEDED") as growth:
        run()
    assert growth.value == 1


def test_claimed_plan_is_counted(run: Callable[[], None]) -> None:
    make_plan({"a": []}, state="PENDING")
    with growth_of("watcher_action_plan_claims_total", kind="claimed") as growth:
        run()
    assert growth.value == 1


def test_adopted_plan_and_recovered_action_are_counted(run: Callable[[], None]) -> None:
    gone = Service.objects.create(name=Service.APPLIER, host="gone", last_seen_up=timezone.now() - timedelta(hours=1))
    plan = make_plan({"a": []}, state="ONGOING", applier=gone)
    Action.objects.filter(pk=action(plan, "a").pk).update(state="ONGOING", owner=gone, attempt=1)
    with (
        growth_of("watcher_action_plan_claims_total", kind="adopted") as adopted,
        growth_of("watcher_action_recoveries_total", action_type="nop") as recovered,
    ):
        run()
    assert (adopted.value, recovered.value) == (1, 1)


def test_deferred_action_is_counted(run: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([Outcome(Answer.RETRY, "busy"), DONE])
    monkeypatch.setattr(Nop, "execute", lambda self: next(answers))
    make_plan({"a": []}, state="PENDING")
    with growth_of("watcher_action_retries_total", action_type="nop") as growth:
        run()
    assert growth.value == 1


def test_each_state_change_is_counted(run: Callable[[], None]) -> None:
    make_plan({"a": []}, state="PENDING")
    with (
        growth_of("watcher_state_changes_total", object="actionplan", state="ONGOING") as begun,
        growth_of("watcher_state_changes_total", object="actionplan", state="SUCCEEDED") as ended,
        growth_of("watcher_state_changes_total", object="action", state="SUCCEEDED") as done,
    ):
        run()
    assert (begun.value, ended.value, done.value) == (1, 1, 1)


def test_bulk_state_changes_are_counted_by_row(django_capture_on_commit_callbacks: Committing) -> None:
    plan = make_plan({"a": [], "b": [], "c": []})
    labels = {"object": "action", "state": "CANCELLED"}
    with (
        growth_of("watcher_state_changes_total", **labels) as growth,
        django_capture_on_commit_callbacks(execute=True),
    ):
        ActionPlan.objects.filter(pk=plan.pk).cancel_unfinished("No longer needed.")
    assert growth.value == 3


@pytest.mark.django_db(transaction=True)
def test_rolled_back_state_change_is_not_counted() -> None:
    plan = make_plan({"a": []})
    with (
        growth_of("watcher_state_changes_total", object="actionplan", state="PENDING") as growth,
        transaction.atomic(),
    ):
        plan.start()
        plan.save_state()
        transaction.set_rollback(True)
    assert growth.value == 0


def test_audit_run_is_measured_with_strategy_and_outcome() -> None:
    make_audit()
    labels = {"strategy": "dummy", "outcome": "succeeded"}
    with growth_of("watcher_audit_run_duration_seconds_count", **labels) as growth:
        assert DecisionEngine().run_next_audit()
    assert growth.value == 1


def test_failed_audit_run_is_measured_as_failed() -> None:
    make_audit(parameters={"para1": "no number"})
    with growth_of("watcher_audit_run_duration_seconds_count", strategy="dummy", outcome="failed") as growth:
        assert DecisionEngine().run_next_audit()
    assert growth.value == 1


def test_delay_of_an_audit_run_is_measured() -> None:
    late = timezone.now() - timedelta(seconds=600)
    make_audit(state="ONGOING", audit_type="CONTINUOUS", interval="3600", next_run_time=late)
    with growth_of("watcher_audit_run_delay_seconds_sum") as growth:
        DecisionEngine().run_next_audit()
    assert 600 <= growth.value < 3600


def test_lost_lease_is_counted() -> None:
    engine = DecisionEngine()
    engine.heartbeat.row_lost = True
    with growth_of("watcher_leases_lost_total", service="watcher-decision-engine") as growth:
        engine.run_next_audit()
    engine.stop()
    assert growth.value == 1


def test_failed_heartbeat_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Service) -> bool:
        raise OperationalError("away")

    heartbeat = Heartbeat(Service.register(Service.RELAY, "ctrl-1"))
    monkeypatch.setattr(Service, "beat", refuse)
    monkeypatch.setattr(connection, "close", lambda: None)
    with growth_of("watcher_database_errors_total", operation="heartbeat") as growth:
        heartbeat.beat()
    assert growth.value == 1


def test_failed_synchronization_is_counted(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        is_mirrored = True

        def read_contents(self, checkpoint: object) -> None:
            raise CloudUnavailable("The cloud does not answer")

    monkeypatch.setattr("cluster.operations.synchronization.cloud", Away)
    name = "watcher_cloud_reading_duration_seconds_count"
    with growth_of(name, outcome="failed") as growth, pytest.raises(CloudUnavailable):
        synchronize()
    assert growth.value == 1
