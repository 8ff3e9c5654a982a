"""The setting on_failure: actions that depend on a failed or cancelled action run, or end with it."""

from collections.abc import Callable

import pytest
from django.db import OperationalError, connection

from actions.engine import execution
from actions.models import Action
from actions.operations.dependencies import change_dependencies
from actions.operations.signals import signal_action
from actions.types.base import ActionType, Answer, Outcome
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.models import ActionPlan
from plans.preflight import preflight
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.builders import action, make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.deriving import behave, deriving
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db
DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "other": []}


def error(_: ActionType) -> Outcome:
    return Outcome(Answer.ERROR, "broken")


def cancel(_: ActionType) -> Outcome:
    return Outcome(Answer.CANCEL, "nobody needs it")


def make_stopping(graph: dict[str, list[str]] = DIAMOND) -> ActionPlan:
    return make_plan(graph, state="PENDING", on_failure="stop")


@pytest.mark.parametrize("answer", [error, cancel])
def test_dependent_actions_run_after_a_failure_by_default(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ActionType], Outcome]
) -> None:
    calls = behave(monkeypatch, a=answer)
    make_plan(DIAMOND, state="PENDING")
    run_waiting()
    assert sorted(calls) == ["a", "b", "c", "d", "other"]


@pytest.mark.parametrize(("answer", "state"), [(error, "FAILED"), (cancel, "CANCELLED")])
def test_with_stop_only_dependent_actions_end_in_the_state_of_the_failed_action(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ActionType], Outcome], state: str
) -> None:
    calls = behave(monkeypatch, a=answer)
    plan = make_stopping()
    run_waiting()
    assert sorted(calls) == ["a", "other"]
    assert states(plan) == {"a": state, "b": state, "c": state, "d": state, "other": "SUCCEEDED"}


@pytest.mark.parametrize(("answer", "words"), [(error, "failed"), (cancel, "was cancelled")])
def test_message_of_a_stopped_action_names_the_failed_or_cancelled_action(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ActionType], Outcome], words: str
) -> None:
    behave(monkeypatch, a=answer)
    plan = make_stopping()
    run_waiting()
    assert action(plan, "d").status_message == (
        f"Action was not executed: action {action(plan, 'a').uuid}, which it depends on, {words}."
    )


@pytest.mark.parametrize(("answer", "state"), [(error, "FAILED"), (cancel, "SUCCEEDED")])
def test_plan_state_follows_failed_actions_but_not_cancelled_ones(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ActionType], Outcome], state: str
) -> None:
    behave(monkeypatch, a=answer)
    plan = make_stopping()
    run_waiting()
    assert reload(plan).state == state


def test_skipped_dependent_action_stays_skipped_and_its_children_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behave(monkeypatch, a=error)
    plan = make_stopping({"a": [], "b": ["a"], "c": ["b"]})
    plan.actions.filter(input_parameters__message="b").update(state="SKIPPED", skipped_by="alice")
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": "SKIPPED", "c": "SUCCEEDED"}


@pytest.mark.parametrize("switch", ["fail_pre_condition", "fail_execute", "fail_post_condition"])
def test_failure_in_any_phase_stops_dependent_actions(switch: str) -> None:
    plan = make_stopping({"a": [], "b": ["a"]})
    Action.objects.filter(pk=action(plan, "a").pk).update(input_parameters={"message": "a", switch: True})
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": "FAILED"}


def test_failure_of_a_recovered_action_stops_dependent_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Nop, "recover")
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING", on_failure="stop")
    Action.objects.filter(pk=action(plan, "a").pk).update(state="ONGOING", attempt=1)
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": "FAILED"}


def test_failed_action_and_its_dependents_end_in_one_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database connection is lost between the end of the action and the end of its dependents."""
    plan = make_stopping({"a": [], "b": ["a"]})
    behave(monkeypatch, a=error)
    monkeypatch.setattr("actions.engine.storage.end_dependents", raise_connection_error)
    monkeypatch.setattr(
        "actions.engine.storage.PERSISTENTLY", lambda work, *phases, **options: work(*phases, **options)
    )
    from tests.actions.engine.test_interruptions import FakeLease

    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING")
    with pytest.raises(OperationalError):
        execution.execute(action(plan, "a"), FakeLease())
    assert states(plan) == {"a": "ONGOING", "b": "PENDING"}


def raise_connection_error(*_: object) -> int:
    raise OperationalError("gone")


def test_dependents_of_a_failed_action_are_cancelled_with_a_cancelling_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_stopping({"a": [], "b": ["a"]})

    def fail_late(_: ActionType) -> Outcome:
        reload(plan).abandon("alice")
        return Outcome(Answer.ERROR)

    behave(monkeypatch, a=fail_late)
    run_waiting()
    assert (states(plan), reload(plan).state) == ({"a": "FAILED", "b": "CANCELLED"}, "CANCELLED")


def test_failure_of_a_derived_action_always_stops_its_dependents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = {"x": [], "y": ["x"], "z": ["y"], "other": []}
    calls = behave(monkeypatch, a=deriving(graph), x=error)
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    run_waiting()
    assert calls == ["a", "x", "other", "a_goes_on", "b"]
    assert states(plan) == {
        "a": "FAILED",
        "b": "SUCCEEDED",
        "x": "FAILED",
        "y": "FAILED",
        "z": "FAILED",
        "other": "SUCCEEDED",
    }


def test_action_continues_after_a_failed_derived_action_before_its_dependents_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = behave(monkeypatch, a=deriving({"x": []}), x=error)
    plan = make_stopping({"a": [], "b": ["a"]})
    run_waiting()
    assert calls == ["a", "x", "a_goes_on"]
    assert set(states(plan).values()) == {"FAILED"}


def test_ending_dependent_actions_uses_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    costs = []
    for size in (3, 30):
        graph = {"a": [], **{f"b{number}": [f"b{number - 1}" if number else "a"] for number in range(size)}}
        plan = make_stopping(graph)
        behave(monkeypatch, a=error)
        with counted() as statements:
            run_waiting()
        assert plan.actions.count_states() == {"FAILED": size + 1}
        costs.append(len(statements))
    assert costs[0] == costs[1], connection.vendor


def cancel_by_signal(plan: ActionPlan, name: str) -> None:
    signal_action(action(plan, name).uuid, Action.Signal.CANCEL, "alice")


def cancel_before_choosing_stop(plan: ActionPlan) -> None:
    cancel_by_signal(plan, "a")
    reload(plan).choose_on_failure("stop")


def cancel_before_adding_a_dependency(plan: ActionPlan) -> None:
    reload(plan).choose_on_failure("stop")
    plan.actions.get(input_parameters__message="b").parent_links.all().delete()
    cancel_by_signal(plan, "a")
    change_dependencies(action(plan, "b").uuid, lambda _: [action(plan, "a").uuid])


@pytest.mark.parametrize("cancel_first", [cancel_before_choosing_stop, cancel_before_adding_a_dependency])
def test_action_cancelled_earlier_stops_actions_that_depend_on_it_later(
    cancel_first: Callable[[ActionPlan], None],
) -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"], "other": []})
    cancel_first(plan)
    foreseen = {one.action.uuid: (one.outcome, one.foresight.message) for one in preflight(reload(plan)).prospects}
    reload(plan).launch()
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED", "c": "CANCELLED", "other": "SUCCEEDED"}
    ended = plan.actions.exclude(pk=action(plan, "a").pk)
    assert foreseen == {one.uuid: (one.state, one.status_message) for one in ended}


def test_with_continue_dependents_of_an_action_cancelled_earlier_run() -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    cancel_by_signal(plan, "a")
    reload(plan).launch()
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "SUCCEEDED"}


def test_on_failure_changed_during_a_claim_makes_the_claim_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    cancel_by_signal(plan, "a")
    reload(plan).launch()
    begin = Applier.begin

    def choose_first(self: Applier, found: ActionPlan) -> None:
        ActionPlan.objects.filter(pk=plan.pk, state="PENDING").update(on_failure="stop")
        begin(self, found)

    monkeypatch.setattr(Applier, "begin", choose_first)
    run_waiting()
    assert reload(plan).state == "PENDING"
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED"}
