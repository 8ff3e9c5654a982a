"""An action that takes longer than it may: at its checkpoint, and where it reaches none."""

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
from tests.plans.test_races import Race
from watcher_site.models import Service

LATE = "It took longer than 5 seconds"


def phases(one: Action) -> list[tuple[str, str | None]]:
    return list(one.events.values_list("event", "result"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of executions: the last of these seconds is the present time."""
    seconds = [0.0]
    monkeypatch.setattr("actions.engine.checkpoints.time.monotonic", lambda: seconds[-1])
    return seconds


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> Callable[[float], None]:
    """Make nop actions take this number of seconds, and call their checkpoint then."""

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
def test_what_takes_too_long_is_failed_at_its_checkpoint_and_its_type_undoes_it(slow: Callable[[float], None]) -> None:
    slow(6)
    one = run(timeout=5)
    assert (one.state, one.status_message) == ("FAILED", f"Action failed in execute: {LATE}")
    assert phases(one) == [("pre_condition", "Success"), ("execute", "Error"), ("abort", "Success")]


@pytest.mark.django_db
@pytest.mark.parametrize("timeout", [None, 0])
def test_without_a_timeout_of_its_own_the_sites_default_counts(
    slow: Callable[[float], None], settings: Settings, timeout: int | None
) -> None:
    settings.DEFAULT_ACTION_TIMEOUT = 5
    slow(6)
    assert run(timeout=timeout).status_message == f"Action failed in execute: {LATE}"


@pytest.mark.django_db
def test_what_is_in_time_is_left_alone(slow: Callable[[float], None]) -> None:
    slow(5)
    assert run(timeout=5).state == "SUCCEEDED"


@pytest.mark.django_db
def test_the_time_of_an_earlier_try_does_not_count(slow: Callable[[float], None], clock: list[float]) -> None:
    slow(4)
    clock.append(1000)
    assert run(timeout=5).state == "SUCCEEDED"


@pytest.mark.django_db
def test_a_plan_may_say_how_long_an_action_takes() -> None:
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
def test_what_is_given_up_is_failed_and_says_so(state: str, message: str) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    lease = lease_of(plan)
    plan.actions.update(state=state, attempt=1, timeout=5, owner=lease.owner)
    one = fail_hung_action(plan.actions.get(), lease, attempt=1, has_begun=True)
    assert one
    assert (one.state, one.status_message, phases(one)) == ("FAILED", message, [("timeout", "Error")])


@pytest.mark.django_db
def test_what_ended_meanwhile_is_not_given_up() -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state="SUCCEEDED", attempt=1)
    one = fail_hung_action(plan.actions.get(), lease_of(plan), attempt=1, has_begun=True)
    assert one
    assert one.state == "SUCCEEDED"


@pytest.mark.django_db
def test_what_was_purged_meanwhile_is_not_there_to_be_given_up() -> None:
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
def test_what_hangs_before_it_begins_is_given_up_though_its_plan_may_begin_nothing(columns: dict[str, Any]) -> None:
    applier = Service.register(Service.APPLIER, "here")
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    ActionPlan.objects.filter(pk=plan.pk).update(**columns)
    one = fail_hung_action(plan.actions.get(), PlanLease.of(plan, applier), attempt=0, has_begun=False)
    assert one
    assert one.state == "FAILED"


@pytest.mark.django_db
def test_what_hangs_before_it_begins_is_left_to_the_applier_that_took_over() -> None:
    plan = make_plan({"a": []}, state="ONGOING", applier=Service.register(Service.APPLIER, "there"))
    one = fail_hung_action(plan.actions.get(), lease_of(plan), attempt=0, has_begun=False)
    assert one
    assert one.state == "PENDING"


def overdue(plan: ActionPlan) -> tuple[Watchdog, list[str]]:
    """Return who watches a process that is stuck in the plan's one action, and what it left."""
    left: list[str] = []
    watchdog = Watchdog(lambda: left.append("the process"), lambda: False)
    watchdog.stopwatch.start(Job(execute, plan.actions.get(), lease_of(plan), limit=-1))
    return watchdog, left


@pytest.mark.django_db
def test_a_worker_process_ends_though_what_it_hangs_in_was_purged() -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    watchdog, left = overdue(plan)
    plan.actions.all().delete()
    watchdog.check()
    assert left == ["the process"]


@pytest.mark.django_db
def test_a_worker_process_ends_though_giving_up_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("of our own")

    watchdog, left = overdue(make_plan({"a": []}, state="ONGOING"))
    monkeypatch.setattr("plans.workers.process.fail_hung_action", fail)
    watchdog.check()
    assert left == ["the process"]


@pytest.mark.django_db
def test_a_worker_process_stays_while_the_database_is_away_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError

    watchdog, left = overdue(make_plan({"a": []}, state="ONGOING"))
    monkeypatch.setattr("plans.workers.process.fail_hung_action", fail)
    monkeypatch.setattr("plans.workers.process.connection.close", lambda: None)
    watchdog.check()
    assert left == []


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """Make the action named stuck wait for this event, without calling its checkpoint."""
    end = Event()

    def execute(self: ActionType) -> Outcome:
        if self.input_parameters["message"] == "stuck":
            end.wait(60)
        return DONE

    monkeypatch.setattr(Nop, "execute", execute)
    yield end
    end.set()


@pytest.mark.django_db(transaction=True)
def test_what_is_stuck_holds_up_neither_its_plan_nor_the_end_of_the_applier(settings: Settings, stuck: Event) -> None:
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
    # What the thread wrote when it came back after all was refused.
    assert not worker.is_alive()
    assert action(plan, "stuck").state == "FAILED"
    connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_a_revert_that_is_stuck_holds_up_neither_the_others_nor_the_end_of_the_plan(
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
def test_of_giving_up_and_finishing_at_the_same_moment_one_wins() -> None:
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
