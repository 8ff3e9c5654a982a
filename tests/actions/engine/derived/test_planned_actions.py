"""Planned actions are in the plan from the beginning: they wait for their origin, which then waits for them."""

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
from tests.actions.engine.derived.test_derived_actions import again, states
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
    """Return who waits for whom."""
    names = ("input_parameters__message", "parents__input_parameters__message")
    return set(plan.actions.exclude(parents=None).values_list(*names))


def advance(plan: ActionPlan) -> None:
    """Execute the first action of a plan, and leave the rest."""
    applier = Applier(InlineExecutor())
    applier.advance()
    applier.stop()


def message(plan: ActionPlan, name: str) -> str:
    return action(plan, name).status_message or ""


def test_what_was_planned_is_executed_after_the_action_and_then_this_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=waits)
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y)
    run_waiting()
    assert calls == ["a", "x", "y", "a_goes_on", "b"]
    assert (again(plan).state, set(states(plan).values())) == ("SUCCEEDED", {"SUCCEEDED"})


def test_the_edges_turn_round_when_the_action_has_been_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=waits)
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y)
    assert edges(plan) == {("b", "a"), ("x", "a"), ("y", "a"), ("y", "x")}
    advance(plan)
    assert edges(plan) == {("b", "a"), ("a", "x"), ("a", "y"), ("y", "x")}


def test_an_action_that_waits_is_owned_by_nobody_and_says_for_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=lambda _: Outcome(Answer.WAIT, "two are left"))
    plan = plan_to_derive(A, {"a": {"x": [], "y": [], "z": []}})
    skip_action(action(plan, "y").uuid, "alice")
    advance(plan)
    found = action(plan, "a")
    assert (found.state, found.owner, found.has_derived) == ("PENDING", None, True)
    assert found.status_message == "Action waits for 2 actions that it derived. two are left"


def test_an_action_sees_what_was_planned_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []

    def look(self: ActionType) -> Outcome:
        seen.append([one.state for one in self.context.derived])
        return Outcome(Answer.WAIT) if len(seen) == 1 else DONE

    behave(monkeypatch, a=look, a_goes_on=look)
    plan = plan_to_derive(A, X_THEN_Y)
    skip_action(action(plan, "x").uuid, "alice")
    run_waiting()
    assert seen == [["SKIPPED", "PENDING"], ["SKIPPED", "SUCCEEDED"]]


def test_what_a_person_skipped_is_not_executed_and_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=waits)
    plan = plan_to_derive(A, X_THEN_Y)
    skip_action(action(plan, "x").uuid, "alice")
    run_waiting()
    assert calls == ["a", "y", "a_goes_on"]
    assert (again(plan).state, states(plan)["a"]) == ("SUCCEEDED", "SUCCEEDED")


def test_an_action_of_which_all_that_was_planned_is_skipped_goes_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=waits)
    plan = plan_to_derive(A, X_THEN_Y)
    for name in "xy":
        skip_action(action(plan, name).uuid, "alice")
    advance(plan)
    assert message(plan, "a") == "Action goes on: nothing that it derived is left to wait for."
    run_waiting()
    assert calls == ["a", "a_goes_on"]
    assert again(plan).state == "SUCCEEDED"


def test_an_action_may_derive_more_than_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [deriving({"last": []}), lambda _: DONE]
    calls = behave(monkeypatch, a=deriving({"more": []}), a_goes_on=lambda self: answers.pop(0)(self))
    plan = plan_to_derive(A, {"a": {"x": []}})
    advance(plan)
    assert message(plan, "a") == "Action waits for 2 actions that it derived."
    run_waiting()
    assert (calls, again(plan).state) == (["a", "x", "more", "a_goes_on", "last", "a_goes_on"], "SUCCEEDED")


def test_an_action_that_goes_on_has_nothing_planned_left_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=waits, a_goes_on=waits)
    plan = plan_to_derive(A, X_THEN_Y)
    run_waiting()
    assert message(plan, "a") == (
        "Action failed in completion: go_on of actions of type nop waits, and derives no action to wait for"
    )


def test_what_was_planned_may_be_to_derive_others(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch, a=waits, x=waits)
    plan = plan_to_derive(A, {"a": {"x": [], "y": ["x"]}, "x": {"deep": []}})
    run_waiting()
    assert calls == ["a", "x", "deep", "x_goes_on", "y", "a_goes_on"]
    assert again(plan).state == "SUCCEEDED"


def test_what_is_derived_may_be_to_derive_others(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_an_action_that_is_deferred_still_has_what_was_planned(
    monkeypatch: pytest.MonkeyPatch, settings: object
) -> None:
    settings.ACTION_RETRY_INTERVAL = 0
    answers = [Outcome(Answer.RETRY, "busy"), Outcome(Answer.WAIT)]
    calls = behave(monkeypatch, a=lambda _: answers.pop(0))
    plan = plan_to_derive(A, X_THEN_Y)
    run_waiting()
    assert calls == ["a", "a", "x", "y", "a_goes_on"]
    assert again(plan).state == "SUCCEEDED"


@pytest.mark.parametrize(
    ("outcome", "state", "said"),
    [
        (DONE, "SKIPPED", "skipped automatically: The action that it was derived from succeeded without it"),
        (Outcome(Answer.ERROR), "FAILED", "which it depends on, failed."),
        (Outcome(Answer.CANCEL), "CANCELLED", "which it depends on, was cancelled."),
    ],
)
def test_what_was_planned_ends_with_an_action_that_does_not_derive_it(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, state: str, said: str
) -> None:
    calls = behave(monkeypatch, a=lambda _: outcome)
    plan = plan_to_derive({"a": [], "b": ["a"]}, {"a": {"x": [], "y": ["x"]}, "x": {"deep": []}})
    run_waiting()
    assert calls == ["a", "b"]
    assert {name: states(plan)[name] for name in ("x", "y", "deep")} == dict.fromkeys(("x", "y", "deep"), state)
    assert all(said in message(plan, name) for name in ("x", "y", "deep"))


def test_what_was_planned_is_skipped_with_an_action_that_is_no_longer_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = behave(monkeypatch)
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y, {"a": {"skip_pre_condition": True}})
    run_waiting()
    assert (calls, again(plan).state) == (["b"], "SUCCEEDED")
    assert (message(plan, "x"), message(plan, "y")) == (WAS_SKIPPED, WAS_SKIPPED)


def test_what_was_planned_is_not_executed_where_the_action_had_been_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nop, "recover", lambda _: Recovery.DONE)
    plan = plan_to_derive(A, X_THEN_Y, state="ONGOING")
    plan.actions.filter(input_parameters__message="a").update(state="ONGOING", attempt=1)
    run_waiting()
    assert states(plan) == {"a": "SUCCEEDED", "x": "SKIPPED", "y": "SKIPPED"}


def test_what_was_planned_fails_with_an_action_whose_worker_was_given_up() -> None:
    plan = plan_to_derive(A, X_THEN_Y, state="ONGOING", applier=Service.register(Service.APPLIER, "here"))
    plan.actions.filter(input_parameters__message="a").update(state="ONGOING", attempt=1, owner=plan.applier)
    assert fail_hung_action(action(plan, "a"), PlanLease.of(plan, plan.applier), attempt=1, has_begun=True)
    assert set(states(plan).values()) == {"FAILED"}


@pytest.mark.parametrize(("on_failure", "b"), [("continue", "SUCCEEDED"), ("stop", "FAILED")])
def test_what_depends_on_an_action_that_fails_is_as_its_plan_says(
    monkeypatch: pytest.MonkeyPatch, on_failure: str, b: str
) -> None:
    behave(monkeypatch, a=lambda _: Outcome(Answer.ERROR))
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y, on_failure=on_failure)
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": b, "x": "FAILED", "y": "FAILED"}


def test_where_a_plan_stops_what_was_planned_ends_with_what_its_action_depends_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behave(monkeypatch, first=lambda _: Outcome(Answer.ERROR))
    plan = plan_to_derive({"first": [], "a": ["first"]}, X_THEN_Y, on_failure="stop")
    run_waiting()
    assert set(states(plan).values()) == {"FAILED"}


def test_an_action_fails_with_what_was_planned_and_what_depends_on_that_is_not_executed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = behave(monkeypatch, a=waits, x=lambda _: Outcome(Answer.ERROR))
    plan = plan_to_derive(A, X_THEN_Y)
    run_waiting()
    assert calls == ["a", "x", "a_goes_on"]
    assert states(plan) == {"a": "FAILED", "x": "FAILED", "y": "FAILED"}


@pytest.mark.parametrize("state", ["RECOMMENDED", "ONGOING"])
def test_what_was_planned_is_cancelled_with_its_action(state: str) -> None:
    plan = plan_to_derive({"a": [], "b": ["a"]}, X_THEN_Y, state=state)
    signal_action(action(plan, "a").uuid, Action.Signal.CANCEL, "alice")
    assert states(plan) == {"a": "CANCELLED", "b": "PENDING", "x": "CANCELLED", "y": "CANCELLED"}


def test_what_was_planned_is_cancelled_with_an_action_that_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    behave(monkeypatch, a=waits)
    plan = plan_to_derive(A, {"a": {"x": []}, "x": {"deep": []}})
    advance(plan)
    signal_action(action(plan, "a").uuid, Action.Signal.CANCEL, "alice")
    run_waiting()
    assert set(states(plan).values()) == {"CANCELLED"}


@pytest.mark.parametrize("when", ["before it begins", "while it waits"])
def test_what_was_planned_is_cancelled_with_the_plan(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    behave(monkeypatch, a=waits)
    monkeypatch.setattr(Nop, "abort", lambda _: True)
    plan = plan_to_derive(A, X_THEN_Y)
    if when == "while it waits":
        advance(plan)
    again(plan).abandon("alice")
    run_waiting()
    assert (again(plan).state, set(states(plan).values())) == ("CANCELLED", {"CANCELLED"})


def test_an_action_whose_plan_is_cancelled_while_it_is_executed_does_not_turn_to_what_was_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def execute(_: ActionType) -> Outcome:
        again(plan).abandon("alice")
        return Outcome(Answer.WAIT)

    behave(monkeypatch, a=execute)
    monkeypatch.setattr(Nop, "abort", lambda _: True)
    plan = plan_to_derive(A, X_THEN_Y)
    run_waiting()
    assert (again(plan).state, set(states(plan).values())) == ("CANCELLED", {"CANCELLED"})
    assert ("x", "a") in edges(plan)


def test_a_rollback_undoes_what_was_planned_after_its_action(
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


def test_to_turn_to_a_hundred_takes_as_many_statements_as_to_ten(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_an_action_that_was_to_derive_others_takes_two_commits_like_any(
    monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    behave(monkeypatch, a=lambda _: Outcome(answer))
    plan, lease = begin(3)
    found = action(plan, "a")
    with counted_commits(monkeypatch) as commits:
        assert execution.execute(found, lease)
    assert len(commits) == 2
