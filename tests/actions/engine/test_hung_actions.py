"""Only an action that the worker still owns, in the same attempt, is failed for a timeout."""

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
from tests.plans.post import Post
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


def service(host: str = "here") -> Service:
    return Service.register(Service.APPLIER, host)


def state_given_up(plan: ActionPlan, applier: Service, *, has_begun: bool = True) -> str:
    one = fail_hung_action(plan.actions.get(), PlanLease.of(plan, applier), attempt=1, has_begun=has_begun)
    return one.state if one else ""


def begun(applier: Service, **columns: Any) -> ActionPlan:
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    plan.actions.update(**{"state": "ONGOING", "attempt": 1, "owner": applier, "timeout": 5, **columns})
    return plan


def test_what_another_has_begun_again_is_left_to_it() -> None:
    applier = service()
    plan = begun(applier, attempt=2, owner=service("there"))
    phase = plan.actions.get().events.create(event="execute")
    assert state_given_up(plan, applier) == "ONGOING"
    phase.refresh_from_db()
    assert phase.finish_time is None


def test_what_another_is_about_to_recover_is_left_to_it() -> None:
    applier = service()
    assert state_given_up(begun(applier, owner=service("there")), applier) == "ONGOING"


def test_what_the_same_applier_has_begun_again_is_left_alone() -> None:
    applier = service()
    assert state_given_up(begun(applier, attempt=2), applier) == "ONGOING"


def test_an_action_that_was_released_in_time_is_left_to_other_workers() -> None:
    applier = service()
    assert state_given_up(begun(applier, state="PENDING", owner=None), applier) == "PENDING"


def test_a_worker_process_leaves_what_hangs_before_it_begins_to_the_applier_that_took_over() -> None:
    plan = begun(service("there"), state="PENDING", owner=None)
    lease = PlanLease(plan.pk, service().pk, "elsewhere", worker=Service.register(Service.WORKER, "elsewhere").pk)
    one = fail_hung_action(plan.actions.get(), lease, attempt=1, has_begun=False)
    assert one
    assert one.state == "PENDING"


# Watched while it works.


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock: the last of these seconds is the present time."""
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
    """Do some work at a plan's one action, watched as a worker's process is."""

    def watch(work: Work, plan: ActionPlan) -> bool:
        one, applier = plan.actions.get(), plan.applier
        assert applier
        job = Job(work, one, PlanLease.of(plan, applier), execution.limit_of(one))
        with watchdog.watching(job):
            return work(one, job.lease, watchdog)

    return watch


def taking(clock: list[float], seconds: float, watchdog: Watchdog, answer: Any) -> Callable[[ActionType], Any]:
    """Return a phase that takes so long, and at whose end the process is looked at."""

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
def test_what_comes_before_an_execution_takes_nothing_of_its_time(
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
def test_a_revert_that_does_not_come_back_is_given_up(
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


def test_a_worker_process_gives_a_revert_as_much_time_as_an_execution(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.POLL_INTERVAL, settings.ROLLBACK = 0, True
    limits = []

    def revert(self: Nop) -> bool:
        job = post.worker.watchdog.stopwatch.job
        limits.append(job and job.limit)
        return True

    monkeypatch.setattr(Nop, "revert", revert)
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    plan.actions.filter(input_parameters__message="b").update(input_parameters={"message": "b", "fail_execute": True})
    post = Post(monkeypatch)
    post.settle()
    post.leave()
    assert limits == [settings.DEFAULT_ACTION_TIMEOUT + settings.ACTION_TIMEOUT_GRACE]


def test_a_thread_that_was_given_up_does_not_begin_after_all() -> None:
    plan = begun(service(), state="PENDING", owner=None)
    thread = WorkerThread(ThreadExecutor(0))
    thread.stopwatch.start(Job(execution.execute, plan.actions.get(), PlanLease.of(plan, service()), limit=-1))
    assert thread.abandon_if_hung()
    with pytest.raises(LeaseLost):
        thread.begin(2)
