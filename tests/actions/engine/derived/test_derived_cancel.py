"""Cancellation of a plan while one of its actions derives others, waits for them, or continues."""

from collections.abc import Callable

import pytest

from actions.engine import execution
from actions.engine.execution import Execution
from actions.models import Action, ActionEvent
from actions.types.base import ActionType, Answer, Outcome
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.applier.plan_run import PlanRun
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.builders import action, make_plan
from tests.plans.deriving import behave, deriving, proposed
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


def waiting_plan(monkeypatch: pytest.MonkeyPatch, graph: dict[str, list[str]] | None = None) -> ActionPlan:
    """Return a plan without an applier, whose first action waits for its derived actions."""
    behave(monkeypatch, a=deriving(graph or {"x": [], "y": ["x"]}))
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = Applier(InlineExecutor())
    applier.advance()
    applier.stop()
    return plan


def test_pending_derived_actions_are_cancelled_before_the_waiting_action_is_aborted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = waiting_plan(monkeypatch)
    seen: list[list[str]] = []
    monkeypatch.setattr(
        Nop, "abort", lambda self: bool(seen.append([one.state for one in self.context.derived])) or True
    )
    reload(plan).abandon("alice")
    run_waiting()
    assert set(states(plan).values()) == {"CANCELLED"}
    assert seen == [["CANCELLED", "CANCELLED"]]
    assert reload(plan).state == "CANCELLED"


@pytest.mark.parametrize("state", ["ONGOING", "CANCELLING"])
def test_waiting_action_is_aborted_after_its_running_derived_actions(
    monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    plan = waiting_plan(monkeypatch)
    plan.actions.filter(input_parameters__message="x").update(state=state, attempt=1)
    aborted: list[str] = []
    monkeypatch.setattr(Nop, "recover", lambda self: aborted.append(self.input_parameters["message"]))
    monkeypatch.setattr(Nop, "abort", lambda self: bool(aborted.append(self.input_parameters["message"])) or True)
    reload(plan).abandon("alice")
    run_waiting()
    assert aborted == ["x", "a"]
    assert set(states(plan).values()) <= {"CANCELLED", "SUCCEEDED"}


def test_waiting_action_without_abort_fails_the_cancelled_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = waiting_plan(monkeypatch)
    monkeypatch.delattr(Nop, "abort")
    reload(plan).abandon("alice")
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": "CANCELLED", "x": "CANCELLED", "y": "CANCELLED"}
    assert reload(plan).state == "FAILED"


def test_action_derives_nothing_if_its_plan_is_cancelled_during_execute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": []}, state="PENDING")

    def execute(self: ActionType) -> Outcome:
        reload(plan).abandon("alice")
        return Outcome(Answer.WAIT, derived=proposed({"x": []}))

    behave(monkeypatch, a=execute)
    run_waiting()
    assert states(plan) == {"a": "CANCELLED"}
    assert list(ActionEvent.objects.values_list("event", "result")) == [
        ("pre_condition", "Success"),
        ("execute", "Cancelled"),
        ("abort", "Success"),
    ]


def test_action_deferred_while_continuing_is_aborted_with_its_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": []}, state="PENDING")

    def go_on(self: ActionType) -> Outcome:
        reload(plan).abandon("alice")
        return Outcome(Answer.RETRY, "busy")

    behave(monkeypatch, a=deriving({"x": []}), a_goes_on=go_on)
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "x": "SUCCEEDED"}
    assert action(plan, "a").events.filter(event="abort", result="Success").exists()
    assert reload(plan).state == "CANCELLED"


def call_before_deriving(monkeypatch: pytest.MonkeyPatch, function: Callable[[], object]) -> None:
    """Call a function after the action read its plan for the last time, and before it writes."""
    derive = Execution.derive

    def derive_late(self: Execution, phase: ActionEvent) -> bool:
        function()
        return derive(self, phase)

    monkeypatch.setattr(Execution, "derive", derive_late)


def test_action_derives_nothing_if_its_plan_is_cancelled_just_before_the_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    behave(monkeypatch, a=deriving({"x": []}))
    call_before_deriving(monkeypatch, lambda: reload(plan).abandon("alice"))
    run_waiting()
    assert (states(plan), reload(plan).state) == ({"a": "CANCELLED"}, "CANCELLED")
    assert action(plan, "a").events.filter(event="abort", result="Success").exists()


def test_action_derives_nothing_if_its_plan_is_adopted_just_before_the_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    applier, other = (Service.register(Service.APPLIER, host) for host in ("one", "two"))
    plan = make_plan({"a": []}, state="ONGOING", applier=applier)
    behave(monkeypatch, a=deriving({"x": []}))
    call_before_deriving(monkeypatch, lambda: ActionPlan.objects.filter(pk=plan.pk).update(applier=other))
    assert not execution.execute(action(plan, "a"), PlanLease.of(plan, applier))
    assert states(plan) == {"a": "ONGOING"}


@pytest.mark.parametrize("is_alive", [True, False])
def test_action_that_a_live_worker_aborts_is_not_recovered_by_the_applier(is_alive: bool) -> None:
    """The worker's reply was lost: the applier finds the action when its last derived action has ended."""
    plan = make_plan({"x": [], "a": ["x"]}, state="ONGOING")
    worker = Service.register(Service.WORKER, "worker-1")
    plan.actions.filter(input_parameters__message="x").update(state="ONGOING", attempt=1)
    a = action(plan, "a")
    Action.objects.filter(pk=a.pk).update(state="CANCELLING", attempt=1, has_derived=True, owner=worker)
    run = PlanRun(plan, Service.register(Service.APPLIER, "control"), InlineExecutor())
    run.running.add(action(plan, "x").pk)
    assert run.next_job({""}) is None
    plan.actions.filter(input_parameters__message="x").update(state="SUCCEEDED")
    if not is_alive:
        worker.retire()
    run.record_end(action(plan, "x"), True)
    jobs = [run.next_job({""}), run.next_job({""})]  # The first call finds the action, the next one returns its job.
    assert [(job.work, job.action) for job in jobs if job] == ([] if is_alive else [(execution.recover, a)])
