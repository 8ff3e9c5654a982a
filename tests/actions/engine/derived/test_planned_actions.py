"""Planned derived actions: they depend on the deriving action, and after its execute it depends on them."""

import pytest

from actions.engine import execution
from actions.engine.timeouts import fail_hung_action
from actions.models import Action
from actions.operations.signals import signal_action
from actions.operations.skipping import skip_action
from actions.types.base import DONE, ActionType, Answer, Outcome, Recovery
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.builders import action, make_plan
from tests.plans.applier.test_commits import counted, counted_commits
from tests.plans.deriving import Graph, behave, deriving, plan_to_derive, waits
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.models import Service

pytestmark = pytest.mark.django_db

A: Graph = {"a": []}
X_THEN_Y: dict[str, Graph] = {"a": {"x": [], "y": ["x"]}}
WAS_SKIPPED = "Action was skipped automatically: The action that it was derived from was skipped"


def edges(plan: ActionPlan) -> set[tuple[str, str]]:
    """Return the pairs of child and parent of a plan."""
    names = ("input_parameters__message", "parents__input_parameters__message")
    return set(plan.actions.exclude(parents=None).values_list(*names))


def advance(plan: ActionPlan) -> None:
    """Execute only the first action of a plan."""
    applier = Applier(InlineExecutor())
    applier.advance()
    applier.stop()


def message(plan: ActionPlan, name: str) -> str:
    return action(plan, name).status_message or ""


def test_planned_actions_run_after_execute_and_before_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=waits)
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y)
    run_waiting()
    assert calls == ["a", "x", "y", "a_goes_on", "b"]
    assert (reload(plan).state, set(states(plan).values())) == ("SUCCEEDED", {"SUCCEEDED"})


def test_execute_reverses_the_links_to_planned_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=waits)
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y)
    assert edges(plan) == {("b", "a"), ("x", "a"), ("y", "a"), ("y", "x")}
    advance(plan)
    assert edges(plan) == {("b", "a"), ("a", "x"), ("a", "y"), ("y", "x")}


def test_waiting_action_has_no_owner_and_its_message_counts_the_planned_actions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behave(monkeypatch, a=lambda _: Outcome(Answer.WAIT, "two are left"))
    plan = plan_to_derive(A, {"a": {"x": [], "y": [], "z": []}})
    skip_action(action(plan, "y").uuid, "alice")
    advance(plan)
    found = action(plan, "a")
    assert (found.state, found.owner, found.has_derived) == ("PENDING", None, True)
    assert found.status_message == "Action waits for 2 actions that it derived. two are left"


def test_context_contains_the_planned_actions_in_execute_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def look(self: ActionType) -> Outcome:
        seen.append([one.state for one in self.context.derived])
        return Outcome(Answer.WAIT) if len(seen) == 1 else DONE

    behave(monkeypatch, a=look, a_goes_on=look)
    plan = plan_to_derive(A, X_THEN_Y)
    skip_action(action(plan, "x").uuid, "alice")
    run_waiting()
    assert seen == [["SKIPPED", "PENDING"], ["SKIPPED", "SUCCEEDED"]]


def test_skipped_planned_action_is_not_executed_and_the_plan_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=waits)
    plan = plan_to_derive(A, X_THEN_Y)
    skip_action(action(plan, "x").uuid, "alice")
    run_waiting()
    assert calls == ["a", "y", "a_goes_on"]
    assert (reload(plan).state, states(plan)["a"]) == ("SUCCEEDED", "SUCCEEDED")


def test_action_continues_at_once_if_all_planned_actions_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=waits)
    plan = plan_to_derive(A, X_THEN_Y)
    for name in "xy":
        skip_action(action(plan, name).uuid, "alice")
    advance(plan)
    assert message(plan, "a") == "Action goes on: nothing that it derived is left to wait for."
    run_waiting()
    assert calls == ["a", "a_goes_on"]
    assert reload(plan).state == "SUCCEEDED"


def test_action_may_derive_more_actions_than_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [deriving({"last": []}), lambda _: DONE]
    calls = behave(monkeypatch, a=deriving({"more": []}), a_goes_on=lambda self: answers.pop(0)(self))
    plan = plan_to_derive(A, {"a": {"x": []}})
    advance(plan)
    assert message(plan, "a") == "Action waits for 2 actions that it derived."
    run_waiting()
    assert (calls, reload(plan).state) == (["a", "x", "more", "a_goes_on", "last", "a_goes_on"], "SUCCEEDED")


def test_go_on_that_waits_without_new_derived_actions_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=waits, a_goes_on=waits)
    plan = plan_to_derive(A, X_THEN_Y)
    run_waiting()
    assert message(plan, "a") == (
        "Action failed in completion: go_on of actions of type nop waits, and derives no action to wait for"
    )


def test_planned_action_may_have_planned_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=waits, x=waits)
    plan = plan_to_derive(A, {"a": {"x": [], "y": ["x"]}, "x": {"deep": []}})
    run_waiting()
    assert calls == ["a", "x", "deep", "x_goes_on", "y", "a_goes_on"]
    assert reload(plan).state == "SUCCEEDED"


def test_derived_action_may_have_planned_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    def derive(self: ActionType) -> Outcome:
        derived = deriving({"x": []})(self).derived
        deep = type(derived[0])("nop", {"message": "deep"}, derived_from=derived[0].uuid)
        return Outcome(Answer.WAIT, derived=[*derived, deep])

    calls = behave(monkeypatch, a=derive, x=waits)
    plan = make_plan({"a": []}, state="PENDING")
    advance(plan)
    assert message(plan, "a") == "Action waits for the action that it derived."
    run_waiting()
    assert calls == ["a", "x", "deep", "x_goes_on", "a_goes_on"]


def test_deferred_action_keeps_its_planned_actions(monkeypatch: pytest.MonkeyPatch, settings: object) -> None:
    settings.ACTION_RETRY_INTERVAL = 0
    answers = [Outcome(Answer.RETRY, "busy"), Outcome(Answer.WAIT)]
    calls = behave(monkeypatch, a=lambda _: answers.pop(0))
    plan = plan_to_derive(A, X_THEN_Y)
    run_waiting()
    assert calls == ["a", "a", "x", "y", "a_goes_on"]
    assert reload(plan).state == "SUCCEEDED"


@pytest.mark.parametrize(
    ("outcome", "state", "said"),
    [
        (DONE, "SKIPPED", "skipped automatically: The action that it was derived from succeeded without it"),
        (Outcome(Answer.ERROR), "FAILED", "which it depends on, failed."),
        (Outcome(Answer.CANCEL), "CANCELLED", "which it depends on, was cancelled."),
    ],
)
def test_planned_actions_end_with_an_action_that_does_not_derive_them(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, state: str, said: str
) -> None:
    calls = behave(monkeypatch, a=lambda _: outcome)
    plan = plan_to_derive({"a": [], "b": ["a"]}, {"a": {"x": [], "y": ["x"]}, "x": {"deep": []}})
    run_waiting()
    assert calls == ["a", "b"]
    assert {name: states(plan)[name] for name in ("x", "y", "deep")} == dict.fromkeys(("x", "y", "deep"), state)
    assert all(said in message(plan, name) for name in ("x", "y", "deep"))


def test_planned_actions_are_skipped_with_a_skipped_action(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch)
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y, {"a": {"skip_pre_condition": True}})
    run_waiting()
    assert (calls, reload(plan).state) == (["b"], "SUCCEEDED")
    assert (message(plan, "x"), message(plan, "y")) == (WAS_SKIPPED, WAS_SKIPPED)


def test_planned_actions_are_skipped_if_recovery_finds_the_action_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nop, "recover", lambda _: Recovery.DONE)
    plan = plan_to_derive(A, X_THEN_Y, state="ONGOING")
    plan.actions.filter(input_parameters__message="a").update(state="ONGOING", attempt=1)
    run_waiting()
    assert states(plan) == {"a": "SUCCEEDED", "x": "SKIPPED", "y": "SKIPPED"}


def test_planned_actions_fail_with_a_hung_action() -> None:
    plan = plan_to_derive(A, X_THEN_Y, state="ONGOING", applier=Service.register(Service.APPLIER, "here"))
    plan.actions.filter(input_parameters__message="a").update(state="ONGOING", attempt=1, owner=plan.applier)
    assert fail_hung_action(action(plan, "a"), PlanLease.of(plan, plan.applier), attempt=1, has_begun=True)
    assert set(states(plan).values()) == {"FAILED"}


@pytest.mark.parametrize(("on_failure", "b"), [("continue", "SUCCEEDED"), ("stop", "FAILED")])
def test_child_of_a_failed_action_follows_the_plans_on_failure(
    monkeypatch: pytest.MonkeyPatch, on_failure: str, b: str
) -> None:
    behave(monkeypatch, a=lambda _: Outcome(Answer.ERROR))
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y, on_failure=on_failure)
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": b, "x": "FAILED", "y": "FAILED"}


def test_planned_actions_fail_if_a_failed_parent_stops_their_action(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behave(monkeypatch, first=lambda _: Outcome(Answer.ERROR))
    plan = plan_to_derive({"first": [], "a": ["first"]}, X_THEN_Y, on_failure="stop")
    run_waiting()
    assert set(states(plan).values()) == {"FAILED"}


def test_failed_planned_action_fails_its_children_and_the_deriving_action(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = behave(monkeypatch, a=waits, x=lambda _: Outcome(Answer.ERROR))
    plan = plan_to_derive(A, X_THEN_Y)
    run_waiting()
    assert calls == ["a", "x", "a_goes_on"]
    assert states(plan) == {"a": "FAILED", "x": "FAILED", "y": "FAILED"}


@pytest.mark.parametrize("state", ["RECOMMENDED", "ONGOING"])
def test_planned_actions_are_cancelled_with_their_action(state: str) -> None:
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y, state=state)
    signal_action(action(plan, "a").uuid, Action.Signal.CANCEL, "alice")
    assert states(plan) == {"a": "CANCELLED", "b": "PENDING", "x": "CANCELLED", "y": "CANCELLED"}


def test_planned_actions_are_cancelled_with_a_waiting_action(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=waits)
    plan = plan_to_derive(A, {"a": {"x": []}, "x": {"deep": []}})
    advance(plan)
    signal_action(action(plan, "a").uuid, Action.Signal.CANCEL, "alice")
    run_waiting()
    assert set(states(plan).values()) == {"CANCELLED"}


@pytest.mark.parametrize("when", ["before it begins", "while it waits"])
def test_planned_actions_are_cancelled_with_the_plan(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    behave(monkeypatch, a=waits)
    monkeypatch.setattr(Nop, "abort", lambda _: True)
    plan = plan_to_derive(A, X_THEN_Y)
    if when == "while it waits":
        advance(plan)
    reload(plan).abandon("alice")
    run_waiting()
    assert (reload(plan).state, set(states(plan).values())) == ("CANCELLED", {"CANCELLED"})


def test_links_are_not_reversed_if_the_plan_is_cancelled_during_execute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def execute(_: ActionType) -> Outcome:
        reload(plan).abandon("alice")
        return Outcome(Answer.WAIT)

    behave(monkeypatch, a=execute)
    monkeypatch.setattr(Nop, "abort", lambda _: True)
    plan = plan_to_derive(A, X_THEN_Y)
    run_waiting()
    assert (reload(plan).state, set(states(plan).values())) == ("CANCELLED", {"CANCELLED"})
    assert ("x", "a") in edges(plan)


def test_rollback_reverts_the_deriving_action_before_its_planned_actions(
    monkeypatch: pytest.MonkeyPatch, settings: object
) -> None:
    settings.ROLLBACK = True
    reverted: list[str] = []
    monkeypatch.setattr(Nop, "revert", lambda self: bool(reverted.append(self.input_parameters["message"])) or True)
    behave(monkeypatch, a=waits, b=lambda _: Outcome(Answer.ERROR, "so that all is undone"))
    plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y)
    run_waiting()
    assert reverted == ["a", "y", "x"]


def begin(size: int) -> tuple[ActionPlan, PlanLease]:
    applier = Service.register(Service.APPLIER, "here")
    plan = plan_to_derive(A, {"a": {f"x{number}": [] for number in range(size)}}, state="ONGOING", applier=applier)
    lease = PlanLease.of(plan, applier)
    lease.hold(has_begun=False)
    return plan, lease


def test_statement_count_of_reversing_links_does_not_depend_on_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=waits)
    costs = []
    for size in (10, 100):
        plan, lease = begin(size)
        with counted() as statements:
            assert execution.execute(action(plan, "a"), lease)
        assert action(plan, "a").parents.count() == size
        costs.append(len(statements))
    assert costs[0] == costs[1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("answer", [Answer.WAIT, Answer.OK, Answer.ERROR])
def test_action_with_planned_actions_takes_two_commits(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    behave(monkeypatch, a=lambda _: Outcome(answer))
    plan, lease = begin(3)
    found = action(plan, "a")
    with counted_commits(monkeypatch) as commits:
        assert execution.execute(found, lease)
    assert len(commits) == 2
