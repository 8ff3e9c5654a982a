"""Schedules: a plan waits for its time, running actions finish, and no action begins outside of a window."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from actions.engine.execution import execute
from actions.models import Action
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning.scheduling import renew_hours
from tests.builders import action, make_plan
from tests.plans.inline import InlineExecutor, run_waiting
from tests.plans.worker_harness import WorkerHarness
from watcher_site.models import Service

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def poll_continuously(settings: object) -> None:
    settings.POLL_INTERVAL = 0


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def states(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.order_by("pk").values_list("input_parameters__message", "state"))


def set_hours(plan: ActionPlan, opens: timedelta, closes: timedelta | None = None) -> None:
    now = timezone.now()
    ActionPlan.objects.filter(pk=plan.pk).update(opens_at=now + opens, closes_at=closes and now + closes)


def close_when_executed(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan, message: str) -> None:
    """Close the window of a plan while one of its actions is executed."""
    original = Nop.execute

    def execute(self: Nop) -> Any:
        if self.input_parameters["message"] == message:
            set_hours(plan, HOUR, 2 * HOUR)
        return original(self)

    monkeypatch.setattr(Nop, "execute", execute)


def make_steps(applier: Applier, number: int = 6) -> Applier:
    for _ in range(number):
        applier.step()
        applier.collect(0)
    return applier


def test_plan_waits_for_its_start_time() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    set_hours(plan, HOUR)
    run_waiting()
    assert again(plan).state == "PENDING"
    set_hours(plan, -HOUR)
    run_waiting()
    assert again(plan).state == "SUCCEEDED"


def test_waiting_plan_can_be_cancelled() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    set_hours(plan, HOUR)
    again(plan).abandon("alice")
    set_hours(plan, -HOUR)
    run_waiting()
    assert (again(plan).state, states(plan)) == ("CANCELLED", {"a": "CANCELLED"})


def test_running_actions_finish_and_others_wait_until_the_window_opens_again(monkeypatch: Any) -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": []}, state="PENDING")
    close_when_executed(monkeypatch, plan, "a")
    applier = make_steps(Applier(InlineExecutor()))
    assert (again(plan).state, states(plan)) == ("ONGOING", {"a": "SUCCEEDED", "b": "PENDING", "c": "PENDING"})
    assert applier.is_idle
    set_hours(plan, -HOUR, HOUR)
    make_steps(applier)
    assert (again(plan).state, states(plan)) == ("SUCCEEDED", dict.fromkeys("abc", "SUCCEEDED"))


def test_plan_whose_last_action_ends_after_the_window_closed_is_completed(monkeypatch: Any) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    close_when_executed(monkeypatch, plan, "a")
    make_steps(Applier(InlineExecutor()))
    assert again(plan).state == "SUCCEEDED"


def test_action_does_not_begin_if_the_window_closed_during_its_claim() -> None:
    """It is not skipped or failed either: pre_condition is evaluated again when the window is open."""
    applier = Service.register(Service.APPLIER, "here")
    plan = make_plan({"a": [], "b": []}, state="ONGOING", applier=applier)
    set_hours(plan, -HOUR, -timedelta(milliseconds=1))
    skips = action(plan, "b")
    Action.objects.filter(pk=skips.pk).update(input_parameters={"message": "b", "skip_pre_condition": True})
    assert [execute(found, PlanLease.of(plan, applier)) for found in plan.actions.all()] == [False, False]
    assert states(plan) == {"a": "PENDING", "b": "PENDING"}


def test_action_refused_by_the_closed_window_begins_when_it_opens(monkeypatch: Any) -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    pre_condition, closed = Nop.pre_condition, []

    def close_first(self: Nop) -> None:
        if not closed:
            set_hours(plan, HOUR, 2 * HOUR)
            closed.append(True)
        pre_condition(self)

    monkeypatch.setattr(Nop, "pre_condition", close_first)
    applier = make_steps(Applier(InlineExecutor(slots=2)))
    assert states(plan) == {"a": "PENDING", "b": "PENDING"}
    set_hours(plan, -HOUR, HOUR)
    make_steps(applier)
    assert again(plan).state == "SUCCEEDED"


def test_interrupted_action_is_recovered_although_the_window_is_closed() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING")
    lost = action(plan, "a")
    lost.begin()
    lost.save_state()
    set_hours(plan, HOUR, 2 * HOUR)
    make_steps(Applier(InlineExecutor()))
    assert states(plan) == {"a": "SUCCEEDED", "b": "PENDING"}


def test_plan_waiting_for_its_window_does_not_count_as_running(settings: object, monkeypatch: Any) -> None:
    settings.APPLIER_PLANS = 1
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    close_when_executed(monkeypatch, plan, "a")
    applier = make_steps(Applier(InlineExecutor()))
    other = make_plan({"x": []}, state="PENDING")
    make_steps(applier)
    assert (again(plan).state, again(other).state) == ("ONGOING", "SUCCEEDED")


def test_plan_waiting_for_its_window_is_released_when_its_applier_stops(monkeypatch: Any) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    close_when_executed(monkeypatch, plan, "a")
    run_waiting()
    assert (again(plan).state, again(plan).applier) == ("ONGOING", None)
    set_hours(plan, -HOUR, HOUR)
    run_waiting()
    assert again(plan).state == "SUCCEEDED"


def test_plan_waiting_for_its_window_can_be_cancelled(monkeypatch: Any) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    close_when_executed(monkeypatch, plan, "a")
    applier = make_steps(Applier(InlineExecutor()))
    again(plan).abandon("alice")
    make_steps(applier)
    assert (again(plan).state, states(plan)) == ("CANCELLED", {"a": "SUCCEEDED", "b": "CANCELLED"})


def test_rollback_waits_for_the_window(settings: object, monkeypatch: Any) -> None:
    settings.ROLLBACK = True
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    failing = action(plan, "b")
    Action.objects.filter(pk=failing.pk).update(input_parameters={"message": "b", "fail_execute": True})
    close_when_executed(monkeypatch, plan, "b")
    applier = make_steps(Applier(InlineExecutor()))
    assert not action(plan, "a").events.filter(event="revert").exists()
    set_hours(plan, -HOUR, HOUR)
    make_steps(applier)
    assert (again(plan).state, action(plan, "a").events.filter(event="revert").count()) == ("FAILED", 1)


# Renewal of windows


def daily(opens: str, closes: str, **more: Any) -> dict[str, Any]:
    return {"opens": opens, "closes": closes, "weekdays": None, "first_day": None, "last_day": None, **more}


def make_plan_with_closed_window(plan_state: str = "ONGOING", **window: Any) -> ActionPlan:
    """Make a plan whose window closed some minutes ago."""
    opened = datetime(2026, 3, 1, 22, tzinfo=UTC)
    return make_plan(
        {"a": []},
        state=plan_state,
        window=daily("22:00", "04:00", **window),
        opens_at=opened,
        closes_at=opened + 6 * HOUR,
    )


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_closed_window_is_replaced_by_the_next_one(monkeypatch: Any, state: str) -> None:
    plan = make_plan_with_closed_window(state)
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 3, 2, 4, 5, tzinfo=UTC))
    assert renew_hours(ActionPlan.objects.all()) == 1
    opens_at = datetime(2026, 3, 2, 22, tzinfo=UTC)
    assert (again(plan).opens_at, again(plan).closes_at) == (opens_at, opens_at + 6 * HOUR)


def test_expired_window_stays_closed() -> None:
    plan = make_plan_with_closed_window(last_day="2026-03-01")
    assert renew_hours(ActionPlan.objects.all()) == 0
    make_steps(Applier(InlineExecutor()))
    assert (again(plan).state, states(plan)) == ("ONGOING", {"a": "PENDING"})


def test_window_of_an_ended_plan_is_not_renewed() -> None:
    make_plan_with_closed_window("SUCCEEDED")
    assert renew_hours(ActionPlan.objects.all()) == 0


def test_window_of_an_unknown_zone_is_not_renewed() -> None:
    plan = make_plan_with_closed_window()
    ActionPlan.objects.filter(pk=plan.pk).update(zone="Europe/Atlantis")
    assert renew_hours(ActionPlan.objects.all()) == 0


def test_renewal_of_windows_uses_one_query_if_none_is_closed(django_assert_num_queries: Any) -> None:
    for _ in range(3):
        set_hours(make_plan(state="PENDING"), HOUR, 2 * HOUR)
    with django_assert_num_queries(1):
        renew_hours(ActionPlan.objects.all())


def test_action_refused_as_too_early_pauses_the_plan(settings: object) -> None:
    settings.POLL_INTERVAL = 60
    plan = make_plan({"a": []}, state="PENDING")
    set_hours(plan, -HOUR, HOUR)
    applier = Applier(InlineExecutor())
    applier.poll()
    set_hours(plan, HOUR)
    applier.submit()
    applier.collect(0)
    assert applier.runs[plan.pk].is_paused


# Workers


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerHarness]:
    made = WorkerHarness(monkeypatch)
    yield made
    made.stop()


def test_worker_does_not_begin_a_child_after_the_window_closed(
    harness: WorkerHarness, monkeypatch: Any, settings: Any
) -> None:
    settings.POLL_INTERVAL = 60  # Before the next poll, only the worker could begin b.
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    close_when_executed(monkeypatch, plan, "a")
    harness.advance()
    harness.deliver()
    assert states(plan) == {"a": "SUCCEEDED", "b": "PENDING"}


def test_actions_sent_to_workers_before_the_window_closed_begin_when_it_opens(harness: WorkerHarness) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    harness.advance()
    set_hours(plan, HOUR, 2 * HOUR)
    harness.run_until_idle()
    assert (again(plan).state, states(plan)) == ("ONGOING", {"a": "PENDING", "b": "PENDING"})
    set_hours(plan, -HOUR, HOUR)
    harness.run_until_idle()
    assert again(plan).state == "SUCCEEDED"
