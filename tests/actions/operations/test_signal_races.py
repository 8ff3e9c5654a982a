"""Signals against what workers do at the same moment: nothing is lost, and the record agrees with what happened."""

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
from watcher_site.models import Service

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
slow = pytest.mark.slow
Signal = Action.Signal
ROUNDS = 50


@pytest.fixture
def applier() -> Service:
    return Service.register(Service.APPLIER, "here")


def make_action(applier: Service, state: str = "ONGOING", **columns: Any) -> Action:
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    begun = {"attempt": 1, "owner": applier} if state != "PENDING" else {}
    plan.actions.update(state=state, **begun, **columns)
    return plan.actions.get()


def again(one: Action) -> Action:
    return Action.objects.get(pk=one.pk)


def lease_of(one: Action) -> PlanLease:
    return PlanLease.of(one.action_plan, one.action_plan.applier)


def say(one: Action, signal: str) -> None:
    signal_action(one.uuid, Signal(signal), "alice")


def was_said(one: Action, signal: str) -> bool:
    return one.events.filter(event=f"signal_{signal.lower()}").exists()


@slow
@pytest.mark.parametrize("signal", ["CANCEL", "SUSPEND"])
def test_what_ends_at_the_moment_of_a_signal_ends(applier: Service, signal: str) -> None:
    """The signal was said before, and is done with, or it is refused."""
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier)
            mine = again(one)
            mine.succeed()
            ended, signalled = race.run(mine.save_state, lambda one=one: say(one, signal))
            assert ended
            assert (again(one).state, again(one).control) == ("SUCCEEDED", None)
            assert was_said(one, signal) == signalled


@slow
def test_a_cancel_is_not_lost_to_a_suspend(applier: Service) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier)
            cancelled, suspended = race.run(lambda one=one: say(one, "CANCEL"), lambda one=one: say(one, "SUSPEND"))
            assert cancelled
            assert again(one).control == "CANCEL"
            assert was_said(one, "SUSPEND") == suspended


@slow
@pytest.mark.parametrize(("state", "control"), [("ONGOING", "SUSPEND"), ("SUSPENDED", "RESUME")])
def test_a_cancel_is_not_lost_to_a_worker_that_honours_what_was_said_before(
    applier: Service, state: str, control: str
) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier, state, control=control)
            suspension = Suspension(again(one), lease_of(one))
            honour = suspension.suspend if control == "SUSPEND" else suspension.resume
            honoured, cancelled = race.run(honour, lambda one=one: say(one, "CANCEL"))
            assert cancelled
            assert again(one).control == "CANCEL"
            assert (again(one).state != state) == honoured


@slow
def test_an_action_that_is_deferred_at_the_moment_of_its_cancel_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    monkeypatch.setattr(Nop, "execute", lambda self: Outcome(Answer.RETRY, "busy"))
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier, "PENDING")
            mine = again(one)
            _, cancelled = race.run(
                lambda mine=mine: execution.execute(mine, lease_of(mine)), lambda one=one: say(one, "CANCEL")
            )
            assert cancelled
            assert (again(one).state, again(one).control) == ("CANCELLED", None)


@slow
def test_an_action_begins_or_is_cancelled_before_it_does(applier: Service) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier, "PENDING")
            mine = again(one)
            executed, signalled = race.run(
                lambda mine=mine: execution.execute(mine, lease_of(mine)), lambda one=one: say(one, "CANCEL")
            )
            assert executed or signalled
            assert again(one).state == ("SUCCEEDED" if executed else "CANCELLED")
            assert one.events.filter(event="execute").exists() == executed
            assert was_said(one, "CANCEL") == signalled


@slow
def test_what_begins_at_the_moment_its_plan_is_suspended_is_signalled_or_does_not_begin(applier: Service) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            one = make_action(applier, "PENDING")
            mine = again(one)
            plan = ActionPlan.objects.get(pk=one.action_plan_id)
            seen: list[tuple[str, bool]] = []

            def suspend(one: Action = one, plan: ActionPlan = plan, seen: list[tuple[str, bool]] = seen) -> None:
                signal_plan(plan, Signal.SUSPEND, "alice")
                seen.append((again(one).state, was_said(one, "SUSPEND")))

            executed, suspended = race.run(lambda mine=mine: execution.execute(mine, lease_of(mine)), suspend)
            assert suspended
            ((state, signalled),) = seen
            assert executed == (state != "PENDING")
            assert signalled or state in {"PENDING", "SUCCEEDED"}


# The one order that matters.


def test_a_worker_that_is_about_to_wait_sees_that_the_signal_became_a_cancel(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    one = make_action(applier, control="SUSPEND")
    person = Rival(lambda: say(one, "CANCEL"))
    interrupt_before(monkeypatch, PlanLease, "hold", person)
    assert not Suspension(again(one), lease_of(one)).suspend()
    person.result()
    assert (again(one).state, again(one).control) == ("ONGOING", "CANCEL")


def test_a_cancel_waits_for_a_worker_that_is_about_to_wait(monkeypatch: pytest.MonkeyPatch, applier: Service) -> None:
    one = make_action(applier, control="SUSPEND")
    person = Rival(lambda: say(one, "CANCEL"))
    interrupt_before(monkeypatch, Action, "save_state", person)
    assert Suspension(again(one), lease_of(one)).suspend()
    person.result()
    assert (again(one).state, again(one).control) == ("SUSPENDED", "CANCEL")


def test_what_begins_again_keeps_a_signal_that_comes_at_that_moment(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    """Its worker was lost. Its type's recover is called, with the signal."""
    one = make_action(applier)
    person = Rival(lambda: say(one, "SUSPEND"))
    interrupt_before(monkeypatch, Nop, "recover", person)
    assert not execution.recover(again(one), lease_of(one))
    person.result()
    assert (again(one).state, again(one).control) == ("ONGOING", "SUSPEND")
    assert execution.recover(again(one), lease_of(one))
    assert again(one).state == "SUSPENDED"
