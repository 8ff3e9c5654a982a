"""Signals interleaved with the writes of workers: no signal is lost, and the events match the result."""

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
from plans.operations import signals as plan_signals
from tests.builders import make_plan
from tests.interleaving import Rival, interrupt_after, interrupt_before
from watcher_site.models import Service
from watcher_site.refusals import Conflict

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
Signal = Action.Signal


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


@pytest.mark.parametrize("signal", ["CANCEL", "SUSPEND"])
def test_end_of_an_action_waits_for_a_concurrent_signal_and_clears_it(
    monkeypatch: pytest.MonkeyPatch, applier: Service, signal: str
) -> None:
    one = make_action(applier)
    ended = reload(one)
    ended.succeed()
    worker = Rival(ended.save_state)
    interrupt_after(monkeypatch, Action, "save_state", worker)
    send_signal(one, signal)
    worker.result()
    assert (reload(one).state, reload(one).control) == ("SUCCEEDED", None)
    assert has_signal_event(one, signal)


@pytest.mark.parametrize("signal", ["CANCEL", "SUSPEND"])
def test_signal_waits_for_the_end_of_the_action_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, applier: Service, signal: str
) -> None:
    one = make_action(applier)
    ended = reload(one)
    ended.succeed()
    person = Rival(lambda: send_signal(one, signal))
    interrupt_after(monkeypatch, Action, "save_state", person)
    ended.save_state()
    with pytest.raises(Conflict, match="SUCCEEDED"):
        person.result()
    assert (reload(one).state, reload(one).control) == ("SUCCEEDED", None)
    assert not has_signal_event(one, signal)


def test_suspend_waits_for_a_concurrent_cancel_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    one = make_action(applier)
    person = Rival(lambda: send_signal(one, "SUSPEND"))
    interrupt_after(monkeypatch, Action, "save_state", person)
    send_signal(one, "CANCEL")
    with pytest.raises(Conflict):
        person.result()
    assert reload(one).control == "CANCEL"
    assert not has_signal_event(one, "SUSPEND")


def test_cancel_waits_for_a_concurrent_suspend_and_replaces_it(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    one = make_action(applier)
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_after(monkeypatch, Action, "save_state", person)
    send_signal(one, "SUSPEND")
    person.result()
    assert reload(one).control == "CANCEL"
    assert has_signal_event(one, "SUSPEND")


HANDLED_SIGNALS = pytest.mark.parametrize(
    ("state", "control", "handled_state"), [("ONGOING", "SUSPEND", "SUSPENDED"), ("SUSPENDED", "RESUME", "ONGOING")]
)


def handle_signal(one: Action, control: str) -> bool:
    """Handle a SUSPEND or RESUME signal as the worker of the action does."""
    suspension = Suspension(reload(one), lease_of(one))
    return suspension.suspend() if control == "SUSPEND" else suspension.resume()


@HANDLED_SIGNALS
def test_worker_about_to_handle_an_earlier_signal_reads_a_cancel(
    monkeypatch: pytest.MonkeyPatch, applier: Service, state: str, control: str, handled_state: str
) -> None:
    one = make_action(applier, state, control=control)
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_before(monkeypatch, PlanLease, "hold", person)
    assert not handle_signal(one, control)
    person.result()
    assert (reload(one).state, reload(one).control) == (state, "CANCEL")


@HANDLED_SIGNALS
def test_cancel_waits_for_a_worker_that_handles_an_earlier_signal(
    monkeypatch: pytest.MonkeyPatch, applier: Service, state: str, control: str, handled_state: str
) -> None:
    one = make_action(applier, state, control=control)
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_before(monkeypatch, Action, "save_state", person)
    assert handle_signal(one, control)
    person.result()
    assert (reload(one).state, reload(one).control) == (handled_state, "CANCEL")


def test_deferred_action_with_a_cancel_is_cancelled(monkeypatch: pytest.MonkeyPatch, applier: Service) -> None:
    monkeypatch.setattr(Nop, "execute", lambda self: Outcome(Answer.RETRY, "busy"))
    one = make_action(applier, "PENDING")
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_before(monkeypatch, Nop, "execute", person)
    execution.execute(reload(one), lease_of(one))
    person.result()
    assert (reload(one).state, reload(one).control) == ("CANCELLED", None)


def test_action_cancelled_while_its_worker_defers_it_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    monkeypatch.setattr(Nop, "execute", lambda self: Outcome(Answer.RETRY, "busy"))
    one = make_action(applier, "PENDING")
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_before(monkeypatch, Action, "defer", person)
    execution.execute(reload(one), lease_of(one))
    person.result()
    assert (reload(one).state, reload(one).control) == ("CANCELLED", None)


def test_cancel_waits_for_the_deferral_of_the_action(monkeypatch: pytest.MonkeyPatch, applier: Service) -> None:
    one = make_action(applier)
    deferred = reload(one)
    deferred.defer("busy")
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_after(monkeypatch, Action, "save_state", person)
    deferred.save_state()
    person.result()
    assert (reload(one).state, reload(one).control) == ("CANCELLED", None)


def test_action_with_a_concurrent_cancel_does_not_begin(monkeypatch: pytest.MonkeyPatch, applier: Service) -> None:
    one = make_action(applier, "PENDING")
    found, lease = reload(one), lease_of(one)
    worker = Rival(lambda: execution.execute(found, lease))
    interrupt_after(monkeypatch, Action, "save_state", worker)
    send_signal(one, "CANCEL")
    assert not worker.result()
    assert (reload(one).state, reload(one).attempt) == ("CANCELLED", 0)
    assert not one.events.filter(event="execute").exists()


def test_cancel_waits_for_an_action_that_begins_and_is_sent_to_its_worker(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    one = make_action(applier, "PENDING")
    begun = reload(one)
    begun.begin(applier.pk)
    person = Rival(lambda: send_signal(one, "CANCEL"))
    interrupt_after(monkeypatch, Action, "save_state", person)
    begun.save_state(conditions=[lease_of(one).hold(has_begun=False)])
    person.result()
    assert (reload(one).state, reload(one).control) == ("ONGOING", "CANCEL")
    assert has_signal_event(one, "CANCEL")


def test_action_of_a_plan_that_is_being_suspended_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    one = make_action(applier, "PENDING")
    found, lease = reload(one), lease_of(one)
    worker = Rival(lambda: execution.execute(found, lease))
    interrupt_after(monkeypatch, plan_signals, "signal_actions", worker)
    plan_signals.signal_plan(one.action_plan, Signal.SUSPEND, "alice")
    assert not worker.result()
    assert (reload(one).state, reload(one).attempt) == ("PENDING", 0)


def test_suspension_of_a_plan_waits_for_an_action_that_begins_and_suspends_it(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    one = make_action(applier, "PENDING")
    begun, plan = reload(one), ActionPlan.objects.get(pk=one.action_plan_id)
    begun.begin(applier.pk)
    person = Rival(lambda: plan_signals.signal_plan(plan, Signal.SUSPEND, "alice"))
    interrupt_after(monkeypatch, Action, "save_state", person)
    begun.save_state(conditions=[lease_of(one).hold(has_begun=False)])
    person.result()
    assert (reload(one).state, reload(one).control) == ("ONGOING", "SUSPEND")
    assert has_signal_event(one, "SUSPEND")


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
