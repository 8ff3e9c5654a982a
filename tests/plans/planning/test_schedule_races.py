"""Races of schedules with real threads on PostgreSQL: no action begins outside of a window."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from actions.engine import execution
from actions.models import Action
from plans.applier.applier import Applier
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning import scheduling
from plans.planning.scheduling import schedule
from tests.builders import make_plan
from tests.interleaving import Rival, interrupt_after, interrupt_before
from tests.plans.inline import InlineExecutor
from tests.races import ROUNDS, Race
from tests.waiting import wait_for
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
# A time in the far future.
LATER = {"start_at": "2100-01-01T00:00"}


@pytest.fixture
def applier() -> Service:
    return Service.register(Service.APPLIER, "one")


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def far_window() -> dict[str, Any]:
    return {"window": {"opens": "00:00", "closes": "01:00", "first_day": "2100-01-01"}}


def claim(plan: ActionPlan, applier: Service) -> None:
    """Claim a pending plan as the applier does."""
    plan.begin(applier)
    plan.save_state(guards={"opens_at": plan.opens_at, "closes_at": plan.closes_at})


def test_action_that_is_pending_when_the_window_closes_does_not_begin(applier: Service) -> None:
    """An action that is PENDING when the window closes does not begin."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []}, state="ONGOING", applier=applier)
            action, lease = plan.actions.get(), PlanLease.of(plan, applier)
            seen: list[str] = []

            def close(plan: ActionPlan = plan, seen: list[str] = seen) -> None:
                schedule(plan, far_window())
                seen.append(plan.actions.get().state)

            executed, closed = race.run(lambda action=action, lease=lease: execution.execute(action, lease), close)
            assert closed
            assert executed == (seen != ["PENDING"])
            assert plan.actions.get().state == ("SUCCEEDED" if executed else "PENDING")


def test_action_waits_for_a_concurrent_closing_of_the_window_and_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    action, lease = plan.actions.get(), PlanLease.of(plan, applier)
    worker = Rival(lambda: execution.execute(action, lease))
    interrupt_after(monkeypatch, scheduling, "set_schedule", worker)
    schedule(plan, far_window())
    assert (worker.result(), plan.actions.get().state) == (False, "PENDING")


def test_rescheduling_and_claiming_a_plan_exclude_each_other(applier: Service) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []}, state="PENDING")
            found = again(plan)
            claimed, rescheduled = race.run(
                lambda found=found: claim(found, applier), lambda plan=plan: schedule(plan, LATER)
            )
            assert claimed != rescheduled
            assert (again(plan).state, again(plan).opens_at is None) == (
                ("ONGOING", True) if claimed else ("PENDING", False)
            )


def test_plan_rescheduled_during_a_claim_does_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    person = Rival(lambda: schedule(plan, LATER))
    interrupt_before(monkeypatch, ActionPlan, "save_state", person)
    Applier(InlineExecutor()).poll()
    person.result()
    assert again(plan).state == "PENDING"


def test_plan_started_for_a_time_and_cancelled_concurrently_is_cancelled_or_pending() -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []})
            theirs = again(plan)
            started, cancelled = race.run(
                lambda plan=plan: schedule(plan, LATER, start=True), lambda theirs=theirs: theirs.abandon("alice")
            )
            assert started or cancelled
            assert again(plan).state == ("CANCELLED" if cancelled else "PENDING")


def test_one_of_two_appliers_renews_the_window() -> None:
    night = {"opens": "22:00", "closes": "04:00"}
    closed_at = timezone.now() - timedelta(days=2)
    with Race() as race:
        for _ in range(ROUNDS // 4):
            plan = make_plan(state="ONGOING", window=night, opens_at=closed_at, closes_at=closed_at)
            plans = ActionPlan.objects.filter(pk=plan.pk)
            won = race.run(
                lambda plans=plans: bool(scheduling.renew_hours(plans)),
                lambda plans=plans: bool(scheduling.renew_hours(plans)),
            )
            assert sum(won) == 1
            assert again(plan).closes_at > timezone.now()


def test_no_action_begins_after_the_window_closes(applier: Service) -> None:
    """Four workers begin actions continuously while the window closes."""
    plan = make_plan({str(number): [] for number in range(2000)}, state="ONGOING", applier=applier)
    actions = list(plan.actions.all())
    lease = PlanLease.of(plan, applier)

    def work(mine: list[Action]) -> bool:
        try:
            # Until the first action that is refused.
            return all(execution.execute(action, lease) for action in mine)
        finally:
            connection.close()

    begun = plan.actions.filter(attempt__gt=0)
    with ThreadPoolExecutor(4) as pool:
        results = pool.map(work, [actions[number::4] for number in range(4)])
        wait_for(begun.exists)
        closes_at = timezone.now() + timedelta(seconds=0.5)
        ActionPlan.objects.filter(pk=plan.pk).update(closes_at=closes_at)
    assert list(results) == [False] * 4
    assert not begun.filter(start_time__gte=closes_at).exists()
    assert plan.actions.count_states() == {"SUCCEEDED": begun.count(), "PENDING": 2000 - begun.count()}
