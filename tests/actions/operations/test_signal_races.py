"""Races of signals with the work of the workers: no signal is lost, and the events agree with the result."""

from typing import Any

import pytest

from actions.engine import execution
from actions.engine.checkpoints import Suspension
from actions.models import Action
from actions.operations.signals import signal_action
from actions.types.base import Answer, Outcome
from actions.types.nop import Nop
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from tests.builders import make_plan
from tests.interleaving import Rival, interrupt_before
from tests.plans.test_races import Race
from tests.rounds import rounds
from watcher_site.models import Service

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
slow = pytest.mark.slow
Signal = Action.Signal
ROUNDS = rounds(50)


@pytest.fixture
def applier() -> Service:
    return Service.register(Service.APPLIER, "here")


def make_action(applier: Service, state: str = "ONGOING", **columns: Any) -> Action:
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    begun = {"attempt": 1, "owner": applier} if state != "PENDING" else {}
    plan.actions.update(state=state, **begun, **columns)
    return plan.actions.get()


def reload(one: Action) -> Action:
    return Action.objects.get(pk=one.pk)


def lease_of(one: Action) -> PlanLease:
    return PlanLease.of(one.action_plan, one.action_plan.applier)


def send_signal(one: Action, signal: str) -> None:
    signal_action(one.uuid, Signal(signal), "alice")


def has_signal_event(one: Action, signal: str) -> bool:
    return one.events.filter(event=f"signal_{signal.lower()}").exists()


@slow
@pytest.mark.parametrize("signal", ["CANCEL", "SUSPEND"])
def test_action_that_ends_concurrently_with_a_signal_succeeds(applier: Service, signal: str) -> None:
    """The signal is recorded before the end and cleared by it, or it is refused."""
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier)
            mine = reload(one)
            mine.succeed()
            ended, signalled = race.run(mine.save_state, lambda one=one: send_signal(one, signal))
            assert ended
            assert (reload(one).state, reload(one).control) == ("SUCCEEDED", None)
            assert has_signal_event(one, signal) == signalled


@slow
def test_concurrent_suspend_does_not_replace_a_cancel(applier: Service) -> None:
    with Race() as race:
        for _ in range(rounds(10)):
            one = make_action(applier)
            cancelled, suspended = race.run(
                lambda one=one: send_signal(one, "CANCEL"), lambda one=one: send_signal(one, "SUSPEND")
            )
            assert cancelled
            assert reload(one).control == "CANCEL"
            assert has_signal_event(one, "SUSPEND") == suspended


@slow
@pytest.mark.parametrize(("state", "control"), [("ONGOING", "SUSPEND"), ("SUSPENDED", "RESUME")])
def test_worker_that_handles_an_earlier_signal_does_not_clear_a_cancel(
    applier: Service, state: str, control: str
) -> None:
    with Race() as race:
        for _ in range(rounds(15)):
            one = make_action(applier, state, control=control)
            suspension = Suspension(reload(one), lease_of(one))
            handle = suspension.suspend if control == "SUSPEND" else suspension.resume
            handled, cancelled = race.run(handle, lambda one=one: send_signal(one, "CANCEL"))
            assert cancelled
            assert reload(one).control == "CANCEL"
            assert (reload(one).state != state) == handled


@slow
def test_action_deferred_concurrently_with_its_cancel_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    monkeypatch.setattr(Nop, "execute", lambda self: Outcome(Answer.RETRY, "busy"))
    with Race() as race:
        for _ in range(rounds(20)):
            one = make_action(applier, "PENDING")
            mine = reload(one)
            _, cancelled = race.run(
                lambda mine=mine: execution.execute(mine, lease_of(mine)), lambda one=one: send_signal(one, "CANCEL")
            )
            assert cancelled
            assert (reload(one).state, reload(one).control) == ("CANCELLED", None)


@slow
def test_action_is_either_executed_or_cancelled_before_its_start(applier: Service) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier, "PENDING")
            mine = reload(one)
            executed, signalled = race.run(
                lambda mine=mine: execution.execute(mine, lease_of(mine)), lambda one=one: send_signal(one, "CANCEL")
            )
            assert executed or signalled
            assert reload(one).state == ("SUCCEEDED" if executed else "CANCELLED")
            assert one.events.filter(event="execute").exists() == executed
            assert has_signal_event(one, "CANCEL") == signalled


@slow
def test_action_started_concurrently_with_the_suspension_of_its_plan_gets_the_signal(applier: Service) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier, "PENDING")
            mine = reload(one)
            plan = ActionPlan.objects.get(pk=one.action_plan_id)
            seen: list[tuple[str, bool]] = []

            def suspend(one: Action = one, plan: ActionPlan = plan, seen: list[tuple[str, bool]] = seen) -> None:
                signal_plan(plan, Signal.SUSPEND, "alice")
                seen.append((reload(one).state, has_signal_event(one, "SUSPEND")))

            executed, suspended = race.run(lambda mine=mine: execution.execute(mine, lease_of(mine)), suspend)
            assert suspended
            ((state, signalled),) = seen
            assert executed == (state != "PENDING")
            assert signalled or state in {"PENDING", "SUCCEEDED"}


# The decisive order, interleaved.


def test_worker_about_to_suspend_sees_a_cancel(monkeypatch: pytest.MonkeyPatch, applier: Service) -> None:
    one = make_action(applier, control="SUSPEND")
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_before(monkeypatch, PlanLease, "hold", person)
    assert not Suspension(reload(one), lease_of(one)).suspend()
    person.result()
    assert (reload(one).state, reload(one).control) == ("ONGOING", "CANCEL")


def test_cancel_waits_for_a_worker_that_is_about_to_suspend(monkeypatch: pytest.MonkeyPatch, applier: Service) -> None:
    one = make_action(applier, control="SUSPEND")
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_before(monkeypatch, Action, "save_state", person)
    assert Suspension(reload(one), lease_of(one)).suspend()
    person.result()
    assert (reload(one).state, reload(one).control) == ("SUSPENDED", "CANCEL")


def test_recovered_action_keeps_a_signal_sent_during_recover(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    """The worker of the action was lost: the second recovery handles the signal."""
    one = make_action(applier)
    person = Rival(lambda: send_signal(one, "SUSPEND"))
    interrupt_before(monkeypatch, Nop, "recover", person)
    assert not execution.recover(reload(one), lease_of(one))
    person.result()
    assert (reload(one).state, reload(one).control) == ("ONGOING", "SUSPEND")
    assert execution.recover(reload(one), lease_of(one))
    assert reload(one).state == "SUSPENDED"
