"""Timeouts of actions, at a checkpoint and without one."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.utils import timezone
from pytest_django import Settings

from actions.engine.execution import execute
from actions.engine.timeouts import fail_hung_action
from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.types.base import DONE, ActionType, Outcome
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.executors import Job, ThreadExecutor
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning.proposals import propose
from plans.workers.process import Watchdog
from tests.builders import action, make_plan
from tests.plans.inline import run_waiting
from tests.races import Race
from watcher_site.models import Service

LATE = "It took longer than 5 seconds"


def phases(one: Action) -> list[tuple[str, str | None]]:
    return list(one.events.values_list("event", "result"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the times of the clock of executions, in seconds; the last one is the current time."""
    seconds = [0.0]
    monkeypatch.setattr("actions.engine.checkpoints.time.monotonic", lambda: seconds[-1])
    return seconds


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> Callable[[float], None]:
    """Return a function that makes nop actions take some seconds, and then call their checkpoint."""

    def take(seconds: float) -> None:
        def execute(self: ActionType) -> Outcome:
            clock.append(clock[-1] + seconds)
            self.context.checkpoint()
            return DONE

        monkeypatch.setattr(Nop, "execute", execute)

    return take


def run(**columns: Any) -> Action:
    plan = make_plan({"a": []}, state="PENDING")
    plan.actions.update(**columns)
    run_waiting()
    return action(plan, "a")


@pytest.mark.django_db
def test_timed_out_action_is_failed_at_its_checkpoint_and_aborted(slow: Callable[[float], None]) -> None:
    slow(6)
    one = run(timeout=5)
    assert (one.state, one.status_message) == ("FAILED", f"Action failed in execute: {LATE}")
    assert phases(one) == [("pre_condition", "Success"), ("execute", "Error"), ("abort", "Success")]


@pytest.mark.django_db
@pytest.mark.parametrize("timeout", [None, 0])
def test_action_without_timeout_uses_the_default_timeout(
    slow: Callable[[float], None], settings: Settings, timeout: int | None
) -> None:
    settings.DEFAULT_ACTION_TIMEOUT = 5
    slow(6)
    assert run(timeout=timeout).status_message == f"Action failed in execute: {LATE}"


@pytest.mark.django_db
def test_action_within_its_timeout_succeeds(slow: Callable[[float], None]) -> None:
    slow(5)
    assert run(timeout=5).state == "SUCCEEDED"


@pytest.mark.django_db
def test_timeout_counts_only_the_current_attempt(slow: Callable[[float], None], clock: list[float]) -> None:
    slow(4)
    clock.append(1000)
    assert run(timeout=5).state == "SUCCEEDED"


@pytest.mark.django_db
def test_proposed_timeout_is_stored() -> None:
    plan = propose([ProposedAction("nop", {"message": "a"}, timeout=7), ProposedAction("nop", {"message": "b"})])
    assert [action(plan, name).timeout for name in "ab"] == [7, None]
    assert [action(plan, name).seconds_allowed for name in "ab"] == [7, 3600]


def lease_of(plan: ActionPlan) -> PlanLease:
    return PlanLease.of(plan, Service.register(Service.APPLIER, "here"))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("ONGOING", f"Action failed in execute: {LATE}, and did not stop"),
        ("CANCELLING", f"Action failed in abort: {LATE}, and did not stop"),
    ],
)
def test_hung_action_is_failed_with_the_reason(state: str, message: str) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    lease = lease_of(plan)
    plan.actions.update(state=state, attempt=1, timeout=5, owner=lease.owner)
    one = fail_hung_action(plan.actions.get(), lease, attempt=1, has_begun=True)
    assert one
    assert (one.state, one.status_message, phases(one)) == ("FAILED", message, [("timeout", "Error")])


@pytest.mark.django_db
def test_action_that_ended_meanwhile_is_not_failed() -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state="SUCCEEDED", attempt=1)
    one = fail_hung_action(plan.actions.get(), lease_of(plan), attempt=1, has_begun=True)
    assert one
    assert one.state == "SUCCEEDED"


@pytest.mark.django_db
def test_fail_hung_action_returns_none_for_a_purged_action() -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    one = plan.actions.get()
    lease = lease_of(plan)
    plan.actions.all().delete()
    assert fail_hung_action(one, lease, attempt=1, has_begun=True) is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    "columns",
    [{"suspended_by": "alice"}, {"closes_at": timezone.now() - timedelta(hours=1)}],
    ids=["suspended", "closed"],
)
def test_action_hung_before_its_start_is_failed_in_a_suspended_or_closed_plan(columns: dict[str, Any]) -> None:
    applier = Service.register(Service.APPLIER, "here")
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    ActionPlan.objects.filter(pk=plan.pk).update(**columns)
    one = fail_hung_action(plan.actions.get(), PlanLease.of(plan, applier), attempt=0, has_begun=False)
    assert one
    assert one.state == "FAILED"


@pytest.mark.django_db
def test_action_hung_before_its_start_is_not_failed_in_an_adopted_plan() -> None:
    plan = make_plan({"a": []}, state="ONGOING", applier=Service.register(Service.APPLIER, "there"))
    one = fail_hung_action(plan.actions.get(), lease_of(plan), attempt=0, has_begun=False)
    assert one
    assert one.state == "PENDING"


def overdue(plan: ActionPlan) -> tuple[Watchdog, list[str]]:
    """Return a watchdog whose process hangs in the only action of a plan, and the list of its exits."""
    left: list[str] = []
    watchdog = Watchdog(lambda: left.append("the process"), lambda: False)
    watchdog.stopwatch.start(Job(execute, plan.actions.get(), lease_of(plan), limit=-1))
    return watchdog, left


@pytest.mark.django_db
def test_worker_process_exits_if_its_hung_action_was_purged() -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    watchdog, left = overdue(plan)
    plan.actions.all().delete()
    watchdog.check()
    assert left == ["the process"]


@pytest.mark.django_db
def test_worker_process_exits_if_failing_the_hung_action_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("of our own")

    watchdog, left = overdue(make_plan({"a": []}, state="ONGOING"))
    monkeypatch.setattr("plans.workers.process.fail_hung_action", fail)
    watchdog.check()
    assert left == ["the process"]


@pytest.mark.django_db
def test_worker_process_does_not_exit_while_the_database_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError

    watchdog, left = overdue(make_plan({"a": []}, state="ONGOING"))
    monkeypatch.setattr("plans.workers.process.fail_hung_action", fail)
    monkeypatch.setattr("plans.workers.process.connection.close", lambda: None)
    watchdog.check()
    assert left == []


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Yield an event for which the action "stuck" waits, without calling its checkpoint."""
    end = Event()

    def execute(self: ActionType) -> Outcome:
        if self.input_parameters["message"] == "stuck":
            end.wait(60)
        return DONE

    monkeypatch.setattr(Nop, "execute", execute)
    yield end
    end.set()


@pytest.mark.django_db(transaction=True)
def test_hung_action_delays_neither_its_plan_nor_the_exit_of_the_applier(settings: Settings, stuck: Event) -> None:
    settings.ACTION_TIMEOUT_GRACE = 0
    plan = make_plan({"stuck": [], "after": ["stuck"], "beside": []}, state="PENDING")
    Action.objects.filter(pk=action(plan, "stuck").pk).update(timeout=1)
    executor = ThreadExecutor(1)
    (worker,) = executor.workers
    Applier(executor).run(once=True)
    assert worker.is_alive()
    states = dict(plan.actions.values_list("input_parameters__message", "state"))
    assert states == {"stuck": "FAILED", "after": "SUCCEEDED", "beside": "SUCCEEDED"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "FAILED"
    stuck.set()
    worker.join(30)
    # The late write of the thread was refused.
    assert not worker.is_alive()
    assert action(plan, "stuck").state == "FAILED"
    connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_hung_revert_delays_neither_the_other_reverts_nor_the_plan(
    settings: Settings, stuck: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ACTION_TIMEOUT_GRACE, settings.ROLLBACK = 0, True
    monkeypatch.setattr(Nop, "revert", lambda one: one.input_parameters["message"] == "a" or not stuck.wait(60))
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"]}, state="PENDING")
    Action.objects.filter(pk=action(plan, "b").pk).update(timeout=1)
    Action.objects.filter(pk=action(plan, "c").pk).update(
        input_parameters={"message": "c", "fail_pre_condition": True}
    )
    Applier(ThreadExecutor(1)).run(once=True)
    settled = ActionPlan.objects.get(pk=plan.pk)
    assert (settled.state, action(plan, "b").state) == ("FAILED", "SUCCEEDED")
    assert (settled.status_message or "").endswith(" 1 action reverted, 1 could not be.")
    connections.close_all()


def is_abandoned(one: Action, lease: PlanLease) -> bool:
    found = fail_hung_action(one, lease, attempt=1, has_begun=True)
    return found is not None and found.state == "FAILED"


@pytest.mark.django_db(transaction=True)
def test_concurrent_completion_and_timeout_exclude_each_other() -> None:
    service = Service.register(Service.APPLIER, "here")
    with Race() as race:
        for _ in range(30):
            plan = make_plan({"a": []}, state="ONGOING", applier=service)
            begun = plan.actions.get()
            begun.begin(service.pk)
            begun.save_state()
            lease = PlanLease.of(plan, service)
            begun.succeed()
            finished, given_up = race.run(begun.save_state, lambda one=begun, lease=lease: is_abandoned(one, lease))
            assert finished != given_up
            assert plan.actions.get().state == ("SUCCEEDED" if finished else "FAILED")
