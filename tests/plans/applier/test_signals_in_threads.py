"""Signals to actions in the threads of an applier, with concurrent database connections."""

from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest
from django.db import connections, transaction
from pytest_django import Settings

from actions.models import Action
from actions.operations.signals import signal_action
from actions.types.base import DONE, ActionType, Outcome
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.executors import ThreadExecutor
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from tests.builders import make_plan
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.django_db(transaction=True)
Signal = Action.Signal
Start = Callable[[int], Applier]


@pytest.fixture(autouse=True)
def quick(settings: Settings) -> None:
    settings.POLL_INTERVAL = 0.02
    settings.ACTION_TIMEOUT_GRACE = 0


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts an applier with a number of workers in a thread until the end of the test."""
    started: list[tuple[Applier, Thread]] = []

    def start_applier(workers: int) -> Applier:
        applier = Applier(ThreadExecutor(workers))

        def run() -> None:
            try:
                applier.run()
            finally:
                connections.close_all()

        thread = Thread(target=run)
        started.append((applier, thread))
        thread.start()
        return applier

    yield start_applier
    for applier, thread in started:
        applier.stopping = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


@pytest.fixture
def end(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Make actions whose name begins with long run until this event is set, calling their checkpoint."""
    is_over = Event()

    def execute(self: ActionType) -> Outcome:
        if self.input_parameters["message"].startswith("long"):
            while not is_over.wait(0.01):
                self.context.checkpoint()
        return DONE

    monkeypatch.setattr(Nop, "execute", execute)
    yield is_over
    is_over.set()


def long_plan(number: int = 1) -> ActionPlan:
    return plan_of(*(f"long {place}" for place in range(number)))


def plan_of(*names: str) -> ActionPlan:
    """Make a plan in one transaction, as an applier runs already."""
    with transaction.atomic():
        return make_plan({name: [] for name in names}, state="PENDING")


def states(plan: ActionPlan) -> list[str]:
    return list(plan.actions.order_by("pk").values_list("state", flat=True))


def test_suspended_action_uses_no_worker_and_continues_after_resume(start: Start, end: Event) -> None:
    applier = start(1)
    executor: ThreadExecutor = applier.executor  # type: ignore[assignment]
    plan = long_plan()
    wait_for(lambda: states(plan) == ["ONGOING"])
    signal_action(plan.actions.get().uuid, Signal.SUSPEND, "alice")
    wait_for(lambda: states(plan) == ["SUSPENDED"])
    other = plan_of("x")
    wait_for(lambda: states(other) == ["SUCCEEDED"])
    signal_action(plan.actions.get().uuid, Signal.RESUME, "alice")
    wait_for(lambda: states(plan) == ["ONGOING"])
    end.set()
    wait_for(lambda: states(plan) == ["SUCCEEDED"])
    assert plan.actions.get().attempt == 1
    wait_for(lambda: len(executor.workers) == 1)
    assert (executor.slots, executor.suspended) == (2, 0)


def test_suspended_action_is_not_treated_as_hung(start: Start, end: Event) -> None:
    applier = start(1)
    plan = long_plan()
    wait_for(lambda: states(plan) == ["ONGOING"])
    signal_action(plan.actions.get().uuid, Signal.SUSPEND, "alice")
    wait_for(lambda: states(plan) == ["SUSPENDED"])
    (suspended,) = [worker for worker in applier.executor.workers if worker.stopwatch.is_stopped]  # type: ignore[attr-defined]
    suspended.stopwatch.began -= 1000
    assert applier.executor.release_hung_jobs() == []
    signal_action(plan.actions.get().uuid, Signal.CANCEL, "alice")
    wait_for(lambda: states(plan) == ["CANCELLED"])


def test_stopping_applier_releases_suspended_actions_immediately(start: Start, end: Event) -> None:
    first = start(1)
    plan = long_plan()
    wait_for(lambda: states(plan) == ["ONGOING"])
    signal_action(plan.actions.get().uuid, Signal.SUSPEND, "alice")
    wait_for(lambda: states(plan) == ["SUSPENDED"])
    first.stopping = True
    wait_for(lambda: ActionPlan.objects.get(pk=plan.pk).applier is None)
    assert states(plan) == ["SUSPENDED"]
    end.set()
    start(1)
    wait_for(lambda: ActionPlan.objects.get(pk=plan.pk).applier is not None)
    assert states(plan) == ["SUSPENDED"]
    signal_action(plan.actions.get().uuid, Signal.RESUME, "alice")
    wait_for(lambda: states(plan) == ["SUCCEEDED"])
    assert plan.actions.get().attempt == 2


def test_suspended_plan_suspends_running_actions_and_begins_no_others(start: Start, end: Event) -> None:
    start(2)
    plan = long_plan(3)
    wait_for(lambda: sorted(states(plan)) == ["ONGOING", "ONGOING", "PENDING"])
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.SUSPEND, "alice")
    wait_for(lambda: sorted(states(plan)) == ["PENDING", "SUSPENDED", "SUSPENDED"])
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.RESUME, "alice")
    wait_for(lambda: states(plan)[:2] == ["ONGOING", "ONGOING"])
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.CANCEL, "alice")
    wait_for(lambda: ActionPlan.objects.get(pk=plan.pk).state == "CANCELLED")
    assert states(plan) == ["CANCELLED"] * 3


@pytest.mark.parametrize("whole", [True, False], ids=["with its plan", "alone"])
def test_plan_with_only_suspended_actions_does_not_count_as_running(
    start: Start, end: Event, settings: Settings, whole: bool
) -> None:
    settings.APPLIER_PLANS = 1
    start(1)
    plan = long_plan()
    wait_for(lambda: states(plan) == ["ONGOING"])
    if whole:
        signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.SUSPEND, "alice")
    else:
        signal_action(plan.actions.get().uuid, Signal.SUSPEND, "alice")
    wait_for(lambda: states(plan) == ["SUSPENDED"])
    other = plan_of("x")
    wait_for(lambda: states(other) == ["SUCCEEDED"])
    assert states(plan) == ["SUSPENDED"]


def test_plan_with_a_suspended_and_a_running_action_counts_as_running(
    start: Start, end: Event, settings: Settings
) -> None:
    settings.APPLIER_PLANS = 1
    applier = start(2)
    plan = long_plan(2)
    wait_for(lambda: states(plan) == ["ONGOING"] * 2)
    signal_action(plan.actions.order_by("pk")[0].uuid, Signal.SUSPEND, "alice")
    wait_for(lambda: applier.runs[plan.pk].suspended)
    assert (states(plan), applier.free_plans) == (["SUSPENDED", "ONGOING"], 0)


def test_applier_that_lost_its_lease_releases_suspended_actions(start: Start, end: Event) -> None:
    applier = start(1)
    plan = long_plan()
    wait_for(lambda: states(plan) == ["ONGOING"])
    signal_action(plan.actions.get().uuid, Signal.SUSPEND, "alice")
    wait_for(lambda: states(plan) == ["SUSPENDED"])
    before = applier.service
    applier.heartbeat.row_lost = True
    wait_for(lambda: applier.service != before)
    wait_for(lambda: ActionPlan.objects.get(pk=plan.pk).applier == applier.service)
    assert states(plan) == ["SUSPENDED"]


def test_resumed_action_counts_as_running_before_its_recovery_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadExecutor, "submit", lambda self, job: None)
    plan = make_plan({"x": []}, state="ONGOING", signals=2)
    plan.actions.update(state="SUSPENDED", attempt=1, control=Signal.RESUME)
    applier = Applier(ThreadExecutor(1))
    applier.step()
    applier.poll()
    assert (applier.runs[plan.pk].running, applier.is_idle) == ({plan.actions.get().pk}, False)
