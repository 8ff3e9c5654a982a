"""Signals to a running action: at a checkpoint, while it is suspended, and after the loss of its worker."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings

from actions.engine import execution, leases
from actions.models import Action
from actions.operations.signals import signal_action
from actions.types.base import DONE, ActionType, Answer, LeaseLost, Outcome, Recovery
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from tests.builders import action, make_plan
from tests.plans.inline import InlineExecutor
from watcher_site.models import Service

pytestmark = pytest.mark.django_db
Signal = Action.Signal


@pytest.fixture(autouse=True)
def query_at_every_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "POLL_INTERVAL", 0)


@pytest.fixture
def plan() -> ActionPlan:
    return make_plan({"a": []}, state="ONGOING", applier=Service.register(Service.APPLIER, "here"))


def send_signals(plan: ActionPlan, *signals: str) -> None:
    for signal in signals:
        signal_action(plan.actions.get().uuid, Signal(signal), "alice")


def behave(monkeypatch: pytest.MonkeyPatch, **methods: Any) -> None:
    for name, method in methods.items():
        monkeypatch.setattr(Nop, name, method)


def call_while_suspended(monkeypatch: pytest.MonkeyPatch, *functions: Callable[[], Any]) -> list[str]:
    """Call the functions one after the other while the action is suspended, and return its state before each."""
    seen: list[str] = []
    left = list(functions)

    def wait(*_: Any) -> None:
        seen.append(Action.objects.get().state)
        left.pop(0)()

    monkeypatch.setattr(leases.Slot, "wait", wait)
    return seen


def signalling(plan: ActionPlan, *signals: str) -> Callable[[ActionType], Outcome]:
    """Return an execute method that receives these signals while it runs, and then calls its checkpoint."""

    def execute(self: ActionType) -> Outcome:
        send_signals(plan, *signals)
        self.context.checkpoint()
        return DONE

    return execute


def run(plan: ActionPlan) -> Action:
    execution.execute(plan.actions.get(), lease_of(plan))
    return plan.actions.get()


def lease_of(plan: ActionPlan) -> PlanLease:
    return PlanLease.of(plan, plan.applier)


def phases(one: Action) -> list[str]:
    return list(one.events.values_list("event", flat=True))


def test_suspended_action_waits_and_continues_after_the_resume(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    seen = call_while_suspended(monkeypatch, lambda: None, lambda: send_signals(plan, "RESUME"))
    one = run(plan)
    assert seen == ["SUSPENDED", "SUSPENDED"]
    assert (one.state, one.control) == ("SUCCEEDED", None)
    assert phases(one) == [
        *("pre_condition", "execute", "signal_suspend", "suspend", "signal_resume", "resume", "post_condition")
    ]


def test_action_cancelled_while_suspended_is_aborted_and_names_the_user(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    call_while_suspended(monkeypatch, lambda: send_signals(plan, "CANCEL"))
    one = run(plan)
    assert (one.state, one.control) == ("CANCELLED", None)
    assert one.status_message == "Action execution cancelled. Requested by alice."
    assert phases(one)[-1] == "abort"


def test_cancel_after_the_resume_takes_precedence(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    call_while_suspended(monkeypatch, lambda: send_signals(plan, "RESUME", "CANCEL"))
    assert run(plan).state == "CANCELLED"


def test_suspended_action_is_aborted_with_its_plan(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    call_while_suspended(monkeypatch, lambda: ActionPlan.objects.get().abandon("alice"))
    one = run(plan)
    assert (one.state, one.status_message) == ("CANCELLED", "Action was cancelled with its action plan.")


def test_cancel_stops_a_running_action_at_its_checkpoint(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    behave(monkeypatch, execute=signalling(plan, "CANCEL"))
    assert run(plan).state == "CANCELLED"


def test_suspend_followed_by_resume_has_no_effect(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND", "RESUME"))
    one = run(plan)
    assert one.state == "SUCCEEDED"
    assert "suspend" not in phases(one)


@pytest.mark.parametrize("signal", ["CANCEL", "SUSPEND"])
def test_action_that_ends_before_a_checkpoint_keeps_its_result_and_clears_the_signal(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan, signal: str
) -> None:
    def execute(self: ActionType) -> Outcome:
        send_signals(plan, signal)
        return DONE

    behave(monkeypatch, execute=execute)
    one = run(plan)
    assert (one.state, one.control, one.status_message) == ("SUCCEEDED", None, None)
    assert f"signal_{signal.lower()}" in phases(one)


def test_suspended_time_does_not_count_for_the_timeout(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    plan.actions.update(timeout=5)
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[-1])

    def resume_late() -> None:
        clock.append(1000)
        send_signals(plan, "RESUME")

    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    call_while_suspended(monkeypatch, resume_late)
    assert run(plan).state == "SUCCEEDED"


def answering(plan: ActionPlan, answer: Outcome, *signals: str) -> Callable[[ActionType], Outcome]:
    def execute(self: ActionType) -> Outcome:
        send_signals(plan, *signals)
        return answer

    return execute


def test_action_deferred_at_the_moment_of_its_cancel_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    behave(monkeypatch, execute=answering(plan, Outcome(Answer.RETRY, "busy"), "CANCEL"))
    one = run(plan)
    assert (one.state, one.control) == ("CANCELLED", None)
    assert one.status_message == "Action execution cancelled. Requested by alice."


def test_action_deferred_at_the_moment_of_its_suspend_is_suspended_at_the_retry(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    behave(monkeypatch, execute=answering(plan, Outcome(Answer.RETRY, "busy"), "SUSPEND"))
    one = run(plan)
    assert (one.state, one.control) == ("PENDING", "SUSPEND")
    behave(monkeypatch, execute=signalling(plan))
    monkeypatch.setattr(settings, "POLL_INTERVAL", 1000)
    seen = call_while_suspended(monkeypatch, lambda: send_signals(plan, "RESUME"))
    assert run(plan).state == "SUCCEEDED"
    assert seen == ["SUSPENDED"]


def test_action_stays_suspended_if_its_worker_stops(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    def leave() -> None:
        raise LeaseLost

    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    call_while_suspended(monkeypatch, leave)
    assert run(plan).state == "SUSPENDED"


# After the loss of the worker.


def orphaned_plan(state: str, control: str | None = None) -> tuple[ActionPlan, Applier]:
    """Return a plan whose applier was lost with an action in this state, and the applier that adopted the plan."""
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING")
    Action.objects.filter(pk=action(plan, "a").pk).update(state=state, control=control, attempt=1)
    applier = Applier(InlineExecutor())
    work(applier)
    return plan, applier


def work(applier: Applier) -> None:
    for _ in range(6):
        applier.next_poll = 0
        applier.advance()
        applier.collect(0)


def states(plan: ActionPlan) -> dict[str, str]:
    return dict(plan.actions.values_list("input_parameters__message", "state"))


def test_orphaned_suspended_action_stays_suspended_and_its_plan_ongoing() -> None:
    plan, applier = orphaned_plan("SUSPENDED")
    assert states(plan) == {"a": "SUSPENDED", "b": "PENDING"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "ONGOING"
    applier.stop()
    assert ActionPlan.objects.get(pk=plan.pk).state == "ONGOING"


@pytest.mark.parametrize("recovery", [Recovery.AGAIN, Recovery.DONE])
def test_orphaned_suspended_action_is_recovered_after_the_resume(
    monkeypatch: pytest.MonkeyPatch, recovery: Recovery
) -> None:
    behave(monkeypatch, recover=lambda self: recovery)
    plan, applier = orphaned_plan("SUSPENDED")
    signal_action(action(plan, "a").uuid, Signal.RESUME, "alice")
    work(applier)
    assert states(plan) == {"a": "SUCCEEDED", "b": "SUCCEEDED"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"
    assert "recover" in phases(action(plan, "a"))
    applier.stop()


def test_orphaned_suspended_action_is_aborted_after_the_cancel() -> None:
    plan, applier = orphaned_plan("SUSPENDED")
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    work(applier)
    assert states(plan) == {"a": "CANCELLED", "b": "SUCCEEDED"}
    assert action(plan, "a").status_message == "Action execution cancelled. Requested by alice."
    applier.stop()


@pytest.mark.parametrize(("recovery", "state"), [(Recovery.AGAIN, "CANCELLED"), (Recovery.DONE, "SUCCEEDED")])
def test_unabortable_orphaned_action_succeeds_after_a_cancel_only_if_recover_finds_it_done(
    monkeypatch: pytest.MonkeyPatch, recovery: Recovery, state: str
) -> None:
    """An abort that returns False means that execute completes, which does not hold after the loss of its worker."""
    behave(monkeypatch, recover=lambda self: recovery, abort=lambda self: False)
    plan, applier = orphaned_plan("SUSPENDED")
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    work(applier)
    assert states(plan) == {"a": state, "b": "SUCCEEDED"}
    applier.stop()


def test_orphaned_suspended_action_is_aborted_with_its_plan() -> None:
    plan, applier = orphaned_plan("SUSPENDED")
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    work(applier)
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "CANCELLED"
    applier.stop()


def test_unhandled_suspend_of_a_lost_worker_suspends_the_action() -> None:
    plan, applier = orphaned_plan("ONGOING", "SUSPEND")
    assert states(plan) == {"a": "SUSPENDED", "b": "PENDING"}
    applier.stop()


def test_unhandled_cancel_of_a_lost_worker_aborts_the_action() -> None:
    plan, applier = orphaned_plan("ONGOING", "CANCEL")
    assert states(plan) == {"a": "CANCELLED", "b": "SUCCEEDED"}
    applier.stop()


def test_many_recoveries_of_resumed_actions_do_not_fail_the_action() -> None:
    plan, applier = orphaned_plan("SUSPENDED")
    one = action(plan, "a")
    for _ in range(execution.MAX_RECOVERIES + 1):
        one.events.create(event="recover")
    signal_action(one.uuid, Signal.RESUME, "alice")
    work(applier)
    assert states(plan)["a"] == "SUCCEEDED"
    applier.stop()


def test_plan_with_only_suspended_actions_does_not_count_for_applier_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "APPLIER_PLANS", 1)
    _, applier = orphaned_plan("SUSPENDED")
    other = make_plan({"x": []}, state="PENDING")
    work(applier)
    assert states(other) == {"x": "SUCCEEDED"}
    applier.stop()


def test_plan_with_a_retry_and_a_suspended_action_is_not_idle() -> None:
    plan = make_plan({"a": [], "x": []}, state="PENDING")
    applier = Applier(InlineExecutor(slots=0))
    applier.advance()
    run = applier.runs[plan.pk]
    run.scans.clear()
    run.running = {action(plan, "a").pk, action(plan, "x").pk}
    run.suspended = {action(plan, "a").pk}
    run.record_end(action(plan, "x"), done=False)
    assert not run.is_idle
    run.rescan()
    run.scans.clear()
    assert run.is_idle


def test_children_of_a_cancelled_action_start_while_other_actions_run() -> None:
    plan = make_plan({"a": [], "b": ["a"], "long": []}, state="PENDING")
    applier = Applier(InlineExecutor(slots=0))
    applier.advance()
    run = applier.runs[plan.pk]
    run.scans.clear()
    run.running.add(action(plan, "long").pk)
    Action.objects.filter(pk=action(plan, "long").pk).update(state="ONGOING")
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    applier.poll()
    applier.executor.slots = 1
    applier.submit()
    assert states(plan) == {"a": "CANCELLED", "b": "SUCCEEDED", "long": "ONGOING"}


# Signals to a plan.


def test_suspended_plan_starts_no_action_until_the_resume() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.SUSPEND, "alice")
    work(applier)
    assert states(plan) == {"a": "SUCCEEDED", "b": "PENDING"}
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.RESUME, "alice")
    work(applier)
    assert states(plan) == {"a": "SUCCEEDED", "b": "SUCCEEDED"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"
    applier.stop()


def test_pending_suspended_plan_is_not_claimed_until_the_resume() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    signal_plan(plan, Signal.SUSPEND, "alice")
    applier = Applier(InlineExecutor())
    work(applier)
    assert ActionPlan.objects.get(pk=plan.pk).state == "PENDING"
    signal_plan(plan, Signal.RESUME, "alice")
    work(applier)
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"
    applier.stop()


def test_a_suspended_plan_can_be_cancelled() -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.SUSPEND, "alice")
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.CANCEL, "alice")
    work(applier)
    assert states(plan) == {"a": "SUCCEEDED", "b": "CANCELLED"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "CANCELLED"
    applier.stop()


def test_resumed_action_continues_in_a_suspended_plan() -> None:
    """Only actions that have not started are held by the suspension of the plan."""
    plan, applier = orphaned_plan("SUSPENDED")
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.SUSPEND, "alice")
    signal_action(action(plan, "a").uuid, Signal.RESUME, "alice")
    work(applier)
    assert states(plan) == {"a": "SUCCEEDED", "b": "PENDING"}
    applier.stop()
