"""Hung actions: a timeout fails an action only if the worker still owns it, in the same attempt."""

from collections.abc import Callable
from typing import Any

import pytest
from pytest_django import Settings

from actions.engine import execution
from actions.engine.timeouts import fail_hung_action
from actions.models import Action
from actions.types.base import DONE, ActionType, LeaseLost, Recovery
from actions.types.nop import Nop
from plans.executors import Job
from plans.executors.base import Work
from plans.executors.leases import PlanLease
from plans.executors.threads import ThreadExecutor, WorkerThread
from plans.models import ActionPlan
from plans.workers.process import Watchdog
from tests.builders import make_plan
from tests.plans.worker_harness import WorkerHarness
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


def service(host: str = "here") -> Service:
    return Service.register(Service.APPLIER, host)


def fail_and_get_state(plan: ActionPlan, applier: Service, *, has_begun: bool = True) -> str:
    one = fail_hung_action(plan.actions.get(), PlanLease.of(plan, applier), attempt=1, has_begun=has_begun)
    return one.state if one else ""


def begun(applier: Service, **columns: Any) -> ActionPlan:
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    plan.actions.update(**{"state": "ONGOING", "attempt": 1, "owner": applier, "timeout": 5, **columns})
    return plan


def test_attempt_of_another_applier_is_not_failed() -> None:
    applier = service()
    plan = begun(applier, attempt=2, owner=service("there"))
    phase = plan.actions.get().events.create(event="execute")
    assert fail_and_get_state(plan, applier) == "ONGOING"
    phase.refresh_from_db()
    assert phase.finish_time is None


def test_action_that_another_applier_owns_is_not_failed() -> None:
    applier = service()
    assert fail_and_get_state(begun(applier, owner=service("there")), applier) == "ONGOING"


def test_next_attempt_of_the_same_applier_is_not_failed() -> None:
    applier = service()
    assert fail_and_get_state(begun(applier, attempt=2), applier) == "ONGOING"


def test_released_action_stays_pending() -> None:
    applier = service()
    assert fail_and_get_state(begun(applier, state="PENDING", owner=None), applier) == "PENDING"


def test_worker_process_does_not_fail_an_unstarted_action_of_an_adopted_plan() -> None:
    plan = begun(service("there"), state="PENDING", owner=None)
    lease = PlanLease(plan.pk, service().pk, "elsewhere", worker=Service.register(Service.WORKER, "elsewhere").pk)
    one = fail_hung_action(plan.actions.get(), lease, attempt=1, has_begun=False)
    assert one
    assert one.state == "PENDING"


# Actions under a watchdog.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the times of the clock, in seconds; the last one is the current time."""
    seconds = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: seconds[-1])
    return seconds


Watch = Callable[[Work, ActionPlan], bool]


@pytest.fixture
def left() -> list[str]:
    return []


@pytest.fixture
def watchdog(left: list[str]) -> Watchdog:
    return Watchdog(lambda: left.append("the process"), lambda: False)


@pytest.fixture
def watched(watchdog: Watchdog) -> Watch:
    """Return a function that does some work on the only action of a plan under the watchdog."""

    def watch(work: Work, plan: ActionPlan) -> bool:
        one, applier = plan.actions.get(), plan.applier
        assert applier
        job = Job(work, one, PlanLease.of(plan, applier), execution.limit_of(one))
        with watchdog.watching(job):
            return work(one, job.lease, watchdog)

    return watch


def taking(clock: list[float], seconds: float, watchdog: Watchdog, answer: Any) -> Callable[[ActionType], Any]:
    """Return a phase that takes this time, and then calls the watchdog and its checkpoint."""

    def phase(self: ActionType) -> Any:
        clock.append(clock[-1] + seconds)
        watchdog.check()
        self.context.checkpoint()
        return answer

    return phase


@pytest.mark.parametrize(
    ("work", "before", "answer"),
    [(execution.execute, "pre_condition", None), (execution.recover, "recover", Recovery.AGAIN)],
    ids=["pre_condition", "recover"],
)
def test_time_of_pre_condition_and_recover_does_not_count_as_execution_time(
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    clock: list[float],
    watchdog: Watchdog,
    watched: Watch,
    left: list[str],
    work: Work,
    before: str,
    answer: Any,
) -> None:
    settings.ACTION_TIMEOUT_GRACE = 1
    applier = service()
    state = {"state": "PENDING", "owner": None} if work is execution.execute else {}
    plan = begun(applier, **state)
    monkeypatch.setattr(Nop, before, taking(clock, 4, watchdog, answer))
    monkeypatch.setattr(Nop, "execute", taking(clock, 4, watchdog, DONE))
    assert watched(work, plan)
    assert (plan.actions.get().state, left) == ("SUCCEEDED", [])


@pytest.mark.parametrize("plan_state", ["ONGOING", "CANCELLING"])
def test_hung_revert_is_recorded_as_failed_and_not_retried(
    monkeypatch: pytest.MonkeyPatch,
    clock: list[float],
    watchdog: Watchdog,
    watched: Watch,
    left: list[str],
    plan_state: str,
) -> None:
    stopped = []

    def revert(self: Nop) -> bool:
        clock.append(1000)
        ActionPlan.objects.update(state=plan_state)
        watchdog.check()
        try:
            self.context.checkpoint()
        except LeaseLost:
            stopped.append("at its checkpoint")
            raise
        return True

    monkeypatch.setattr(Nop, "revert", revert)
    plan = begun(service(), state="SUCCEEDED", owner=None)
    assert not watched(execution.revert, plan)
    assert (left, stopped) == (["the process"], ["at its checkpoint"])
    one: Action = plan.actions.get()
    (event,) = one.events.all()
    assert (one.state, one.owner, event.event) == ("SUCCEEDED", None, "revert")
    assert (event.result, event.details) == ("Error", "It took longer than 5 seconds, and did not stop")
    assert not plan.actions.to_revert().exists()


def test_worker_process_applies_the_action_timeout_to_a_revert(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.POLL_INTERVAL, settings.ROLLBACK = 0, True
    limits = []

    def revert(self: Nop) -> bool:
        job = harness.worker.watchdog.stopwatch.job
        limits.append(job and job.limit)
        return True

    monkeypatch.setattr(Nop, "revert", revert)
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    plan.actions.filter(input_parameters__message="b").update(input_parameters={"message": "b", "fail_execute": True})
    harness = WorkerHarness(monkeypatch)
    harness.run_until_idle()
    harness.stop()
    assert limits == [settings.DEFAULT_ACTION_TIMEOUT + settings.ACTION_TIMEOUT_GRACE]


def test_abandoned_thread_cannot_start_its_action() -> None:
    plan = begun(service(), state="PENDING", owner=None)
    thread = WorkerThread(ThreadExecutor(0))
    thread.stopwatch.start(Job(execution.execute, plan.actions.get(), PlanLease.of(plan, service()), limit=-1))
    assert thread.abandon_if_hung()
    with pytest.raises(LeaseLost):
        thread.begin(2)
