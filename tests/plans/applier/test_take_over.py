"""Leases on plans: release, and take-over from dead appliers."""

from datetime import timedelta

import pytest
from django.utils import timezone

from actions.models import Action
from plans.applier.applier import Applier
from plans.applier.plan_run import PlanRun
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.models import Service
from watcher_site.processes.worker import Heartbeat

pytestmark = pytest.mark.django_db


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def dead_service() -> Service:
    return Service.objects.create(name=Service.APPLIER, host="dead", last_seen_up=timezone.now() - timedelta(hours=1))


def plan_of(applier: Service | None, first: str = "ONGOING") -> ActionPlan:
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING", applier=applier)
    Action.objects.filter(pk=action(plan, "a").pk).update(state=first, attempt=1)
    return plan


@pytest.mark.parametrize("first", ["ONGOING", "SUCCEEDED", "FAILED"])
def test_plan_of_a_dead_applier_is_completed_by_another(first: str) -> None:
    plan = plan_of(dead_service(), first)
    run_waiting()
    assert action(plan, "b").state == "SUCCEEDED"
    assert again(plan).state in ActionPlan.FINAL


def test_running_action_of_a_dead_applier_is_recovered() -> None:
    plan = plan_of(dead_service())
    run_waiting()
    assert (action(plan, "a").state, action(plan, "a").attempt) == ("SUCCEEDED", 2)


def test_plan_without_an_owner_is_adopted() -> None:
    plan = plan_of(None)
    run_waiting()
    assert again(plan).state == "SUCCEEDED"


def test_plan_of_a_live_applier_is_not_changed() -> None:
    plan = plan_of(Service.register(Service.APPLIER, "elsewhere"))
    run_waiting()
    assert (again(plan).state, action(plan, "a").state) == ("ONGOING", "ONGOING")


def test_stopping_applier_releases_its_plans() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    applier.stop()
    assert (again(plan).state, again(plan).applier, action(plan, "b").state) == ("ONGOING", None, "PENDING")
    assert not Service.objects.present().exists()


def test_plan_whose_last_action_ends_while_the_applier_stops_is_completed() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.poll()
    applier.submit()
    applier.stop()
    assert again(plan).state == "SUCCEEDED"


def test_applier_claims_no_more_plans_than_the_limit(settings: object) -> None:
    settings.APPLIER_PLANS = 2
    plans = [make_plan({"a": [], "b": ["a"]}, state="PENDING") for _ in range(3)]
    applier = Applier(InlineExecutor())
    applier.poll()
    assert [again(plan).state for plan in plans] == ["ONGOING", "ONGOING", "PENDING"]
    applier.stop()


def test_second_adoption_of_a_plan_fails() -> None:
    plan = plan_of(dead_service())
    owner = plan.applier
    first, second = (Service.register(Service.APPLIER, host) for host in ("one", "two"))
    assert ActionPlan.objects.filter(pk=plan.pk, applier=owner).adopt(first)
    assert not ActionPlan.objects.filter(pk=plan.pk, applier=owner).adopt(second)


def test_owned_plan_that_the_applier_does_not_run_is_resumed() -> None:
    applier = Applier(InlineExecutor())
    plan = plan_of(applier.service)
    applier.poll()
    assert plan.pk in applier.runs
    applier.stop()


def test_applier_whose_service_row_was_deleted_registers_again() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    Service.objects.filter(pk=applier.service.pk).update(deleted_at=timezone.now())
    applier.heartbeat.beat()
    before = applier.service
    applier.poll()
    applier.collect(0)
    while again(plan).state == "ONGOING":
        applier.poll_soon()
        applier.advance()
        applier.collect(0)
    assert applier.service != before
    assert again(plan).state == "SUCCEEDED"
    applier.stop()


def test_applier_whose_heartbeat_thread_ended_registers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Heartbeat, "run", lambda self: None)
    applier = Applier(InlineExecutor())
    before = applier.service
    applier.heartbeat.start()
    applier.heartbeat.thread.join()
    applier.poll()
    assert applier.service != before
    applier.stop()


def test_applier_with_an_expired_lease_and_its_replacement_share_no_plan() -> None:
    slept = Applier(InlineExecutor(), host="one")
    Service.objects.update(last_seen_up=timezone.now() - timedelta(hours=1))
    started = Applier(InlineExecutor(), host="one")
    make_plan({"a": []}, state="PENDING")
    slept.poll()
    started.poll()
    claimed = ActionPlan.objects.get()
    assert slept.service != started.service
    assert claimed.applier == started.service
    assert not slept.runs[claimed.pk].lease.hold(has_begun=False).rows()
    for applier in (slept, started):
        applier.stop()


def test_late_outcome_does_not_cancel_the_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old worker writes between the count of states and the search for interrupted actions."""
    applier = Applier(InlineExecutor())
    plan = plan_of(applier.service)
    run = applier.runs[plan.pk] = PlanRun(plan, applier.service, applier.executor)
    run.scans.clear()
    recover = PlanRun.recover

    def write_late(self: PlanRun) -> int:
        plan.actions.filter(state="ONGOING").update(state="SUCCEEDED")
        return recover(self)

    monkeypatch.setattr(PlanRun, "recover", write_late)
    applier.settle()
    applier.stop()
    assert (action(plan, "b").state, again(plan).state) == ("PENDING", "ONGOING")
