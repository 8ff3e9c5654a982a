"""Signals to a running action: at a checkpoint, while it is released, and after a crash."""

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
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "POLL_INTERVAL", 0)


@pytest.fixture
def plan() -> ActionPlan:
    return make_plan({"a": []}, state="ONGOING", applier=Service.register(Service.APPLIER, "here"))


def say(plan: ActionPlan, *signals: str) -> None:
    for signal in signals:
        signal_action(plan.actions.get().uuid, Signal(signal), "alice")


def behave(monkeypatch: pytest.MonkeyPatch, **methods: Any) -> None:
    for name, method in methods.items():
        monkeypatch.setattr(Nop, name, method)


def while_waiting(monkeypatch: pytest.MonkeyPatch, *happenings: Callable[[], Any]) -> list[str]:
    """Call the functions one after the other while the action is suspended, and return its state before each."""
    seen: list[str] = []
    left = list(happenings)

    def wait(*_: Any) -> None:
        seen.append(Action.objects.get().state)
        left.pop(0)()

    monkeypatch.setattr(leases.Slot, "wait", wait)
    return seen


def signalling(plan: ActionPlan, *signals: str) -> Callable[[ActionType], Outcome]:
    """Return an execute method that receives these signals while it runs, and then calls its checkpoint."""

    def execute(self: ActionType) -> Outcome:
        say(plan, *signals)
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


def test_what_is_suspended_waits_and_goes_on_when_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    seen = while_waiting(monkeypatch, lambda: None, lambda: say(plan, "RESUME"))
    one = run(plan)
    assert seen == ["SUSPENDED", "SUSPENDED"]
    assert (one.state, one.control) == ("SUCCEEDED", None)
    assert phases(one) == [
        *("pre_condition", "execute", "signal_suspend", "suspend", "signal_resume", "resume", "post_condition")
    ]


def test_what_is_cancelled_while_it_waits_is_aborted_and_says_by_whom(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    while_waiting(monkeypatch, lambda: say(plan, "CANCEL"))
    one = run(plan)
    assert (one.state, one.control) == ("CANCELLED", None)
    assert one.status_message == "Action execution cancelled. Requested by alice."
    assert phases(one)[-1] == "abort"


def test_a_cancel_that_comes_after_the_resume_wins(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    while_waiting(monkeypatch, lambda: say(plan, "RESUME", "CANCEL"))
    assert run(plan).state == "CANCELLED"


def test_what_waits_is_aborted_with_its_plan(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    while_waiting(monkeypatch, lambda: ActionPlan.objects.get().abandon("alice"))
    one = run(plan)
    assert (one.state, one.status_message) == ("CANCELLED", "Action was cancelled with its action plan.")


def test_a_cancel_stops_what_runs_at_its_checkpoint(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    behave(monkeypatch, execute=signalling(plan, "CANCEL"))
    assert run(plan).state == "CANCELLED"


def test_a_suspend_that_was_taken_back_suspends_nothing(monkeypatch: pytest.MonkeyPatch, plan: ActionPlan) -> None:
    behave(monkeypatch, execute=signalling(plan, "SUSPEND", "RESUME"))
    one = run(plan)
    assert one.state == "SUCCEEDED"
    assert "suspend" not in phases(one)


@pytest.mark.parametrize("signal", ["CANCEL", "SUSPEND"])
def test_what_ends_before_it_looks_keeps_its_result_and_is_done_with_the_signal(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan, signal: str
) -> None:
    def execute(self: ActionType) -> Outcome:
        say(plan, signal)
        return DONE

    behave(monkeypatch, execute=execute)
    one = run(plan)
    assert (one.state, one.control, one.status_message) == ("SUCCEEDED", None, None)
    assert f"signal_{signal.lower()}" in phases(one)


def test_the_time_that_it_waits_is_not_taken_from_what_it_may_take(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    plan.actions.update(timeout=5)
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[-1])

    def resume_late() -> None:
        clock.append(1000)
        say(plan, "RESUME")

    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    while_waiting(monkeypatch, resume_late)
    assert run(plan).state == "SUCCEEDED"


def answering(plan: ActionPlan, answer: Outcome, *signals: str) -> Callable[[ActionType], Outcome]:
    def execute(self: ActionType) -> Outcome:
        say(plan, *signals)
        return answer

    return execute


def test_what_is_deferred_in_the_moment_of_its_cancel_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    behave(monkeypatch, execute=answering(plan, Outcome(Answer.RETRY, "busy"), "CANCEL"))
    one = run(plan)
    assert (one.state, one.control) == ("CANCELLED", None)
    assert one.status_message == "Action execution cancelled. Requested by alice."


def test_what_is_deferred_in_the_moment_of_its_suspension_is_suspended_when_it_begins_again(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    behave(monkeypatch, execute=answering(plan, Outcome(Answer.RETRY, "busy"), "SUSPEND"))
    one = run(plan)
    assert (one.state, one.control) == ("PENDING", "SUSPEND")
    behave(monkeypatch, execute=signalling(plan))
    monkeypatch.setattr(settings, "POLL_INTERVAL", 1000)
    seen = while_waiting(monkeypatch, lambda: say(plan, "RESUME"))
    assert run(plan).state == "SUCCEEDED"
    assert seen == ["SUSPENDED"]


def test_a_worker_that_leaves_lets_what_is_suspended_stay_so(
    monkeypatch: pytest.MonkeyPatch, plan: ActionPlan
) -> None:
    def leave() -> None:
        raise LeaseLost

    behave(monkeypatch, execute=signalling(plan, "SUSPEND"))
    while_waiting(monkeypatch, leave)
    assert run(plan).state == "SUSPENDED"


# After a crash.


def left_behind(state: str, control: str | None = None) -> tuple[ActionPlan, Applier]:
    """Return a plan whose applier was lost with an action in this state, and an applier that looked at it."""
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


def test_what_is_suspended_in_owned_by_nobody_stays_so_and_holds_up_the_end_of_its_plan() -> None:
    plan, applier = left_behind("SUSPENDED")
    assert states(plan) == {"a": "SUSPENDED", "b": "PENDING"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "ONGOING"
    applier.stop()
    assert ActionPlan.objects.get(pk=plan.pk).state == "ONGOING"


@pytest.mark.parametrize("recovery", [Recovery.AGAIN, Recovery.DONE])
def test_once_it_is_resumed_its_recover_is_called_and_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, recovery: Recovery
) -> None:
    behave(monkeypatch, recover=lambda self: recovery)
    plan, applier = left_behind("SUSPENDED")
    signal_action(action(plan, "a").uuid, Signal.RESUME, "alice")
    work(applier)
    assert states(plan) == {"a": "SUCCEEDED", "b": "SUCCEEDED"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "SUCCEEDED"
    assert "recover" in phases(action(plan, "a"))
    applier.stop()


def test_once_it_is_cancelled_it_is_aborted() -> None:
    plan, applier = left_behind("SUSPENDED")
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    work(applier)
    assert states(plan) == {"a": "CANCELLED", "b": "SUCCEEDED"}
    assert action(plan, "a").status_message == "Action execution cancelled. Requested by alice."
    applier.stop()


@pytest.mark.parametrize(("recovery", "state"), [(Recovery.AGAIN, "CANCELLED"), (Recovery.DONE, "SUCCEEDED")])
def test_what_can_not_be_aborted_is_not_taken_for_done_when_it_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, recovery: Recovery, state: str
) -> None:
    """A type whose execute always comes to its end says so when its abort is called: its worker was lost before."""
    behave(monkeypatch, recover=lambda self: recovery, abort=lambda self: False)
    plan, applier = left_behind("SUSPENDED")
    signal_action(action(plan, "a").uuid, Signal.CANCEL, "alice")
    work(applier)
    assert states(plan) == {"a": state, "b": "SUCCEEDED"}
    applier.stop()


def test_it_is_aborted_with_its_plan() -> None:
    plan, applier = left_behind("SUSPENDED")
    ActionPlan.objects.get(pk=plan.pk).abandon("alice")
    work(applier)
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED"}
    assert ActionPlan.objects.get(pk=plan.pk).state == "CANCELLED"
    applier.stop()


def test_a_suspend_that_the_lost_worker_did_not_honour_is_honoured_without_one() -> None:
    plan, applier = left_behind("ONGOING", "SUSPEND")
    assert states(plan) == {"a": "SUSPENDED", "b": "PENDING"}
    applier.stop()


def test_a_cancel_that_the_lost_worker_did_not_honour_is_honoured() -> None:
    plan, applier = left_behind("ONGOING", "CANCEL")
    assert states(plan) == {"a": "CANCELLED", "b": "SUCCEEDED"}
    applier.stop()


def test_that_a_person_has_it_go_on_many_times_does_not_make_it_fail() -> None:
    plan, applier = left_behind("SUSPENDED")
    one = action(plan, "a")
    for _ in range(execution.MAX_RECOVERIES + 1):
        one.events.create(event="recover")
    signal_action(one.uuid, Signal.RESUME, "alice")
    work(applier)
    assert states(plan)["a"] == "SUCCEEDED"
    applier.stop()


def test_what_is_suspended_takes_no_place_among_the_plans_of_an_applier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "APPLIER_PLANS", 1)
    _, applier = left_behind("SUSPENDED")
    other = make_plan({"x": []}, state="PENDING")
    work(applier)
    assert states(other) == {"x": "SUCCEEDED"}
    applier.stop()


def test_a_plan_that_is_about_to_try_an_action_again_keeps_its_place_beside_what_is_suspended() -> None:
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


def test_the_children_of_what_a_person_cancels_begin_while_others_are_still_at_work() -> None:
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


# A whole plan.


def test_nothing_of_a_suspended_plan_begins_until_it_is_resumed() -> None:
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


def test_a_plan_that_is_suspended_before_it_began_is_not_claimed_until_it_is_resumed() -> None:
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


def test_what_began_goes_on_in_a_suspended_plan_once_it_is_resumed_alone() -> None:
    """Nor is it held against it that nothing of the plan may begin."""
    plan, applier = left_behind("SUSPENDED")
    signal_plan(ActionPlan.objects.get(pk=plan.pk), Signal.SUSPEND, "alice")
    signal_action(action(plan, "a").uuid, Signal.RESUME, "alice")
    work(applier)
    assert states(plan) == {"a": "SUCCEEDED", "b": "PENDING"}
    applier.stop()
