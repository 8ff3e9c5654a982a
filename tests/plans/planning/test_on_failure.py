"""Actions that depend on a failed or cancelled one are executed all the same, or end with it."""

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
from tests.actions.engine.derived.test_derived_actions import again, states
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
def test_by_default_what_depends_on_it_is_executed(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ActionType], Outcome]
) -> None:
    calls = behave(monkeypatch, a=answer)
    make_plan(DIAMOND, state="PENDING")
    run_waiting()
    assert sorted(calls) == ["a", "b", "c", "d", "other"]


@pytest.mark.parametrize(("answer", "state"), [(error, "FAILED"), (cancel, "CANCELLED")])
def test_where_the_plan_says_stop_what_depends_on_it_ends_as_it_did_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ActionType], Outcome], state: str
) -> None:
    calls = behave(monkeypatch, a=answer)
    plan = make_stopping()
    run_waiting()
    assert sorted(calls) == ["a", "other"]
    assert states(plan) == {"a": state, "b": state, "c": state, "d": state, "other": "SUCCEEDED"}


@pytest.mark.parametrize(("answer", "words"), [(error, "failed"), (cancel, "was cancelled")])
def test_what_ends_with_another_names_it(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ActionType], Outcome], words: str
) -> None:
    behave(monkeypatch, a=answer)
    plan = make_stopping()
    run_waiting()
    assert action(plan, "d").status_message == (
        f"Action was not executed: action {action(plan, 'a').uuid}, which it depends on, {words}."
    )


@pytest.mark.parametrize(("answer", "state"), [(error, "FAILED"), (cancel, "SUCCEEDED")])
def test_a_plan_fails_by_what_failed_and_not_by_what_was_cancelled(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ActionType], Outcome], state: str
) -> None:
    behave(monkeypatch, a=answer)
    plan = make_stopping()
    run_waiting()
    assert again(plan).state == state


def test_what_was_skipped_before_stays_so_and_what_waits_for_it_alone_is_executed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behave(monkeypatch, a=error)
    plan = make_stopping({"a": [], "b": ["a"], "c": ["b"]})
    plan.actions.filter(input_parameters__message="b").update(state="SKIPPED", skipped_by="alice")
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": "SKIPPED", "c": "SUCCEEDED"}


@pytest.mark.parametrize("switch", ["fail_pre_condition", "fail_execute", "fail_post_condition"])
def test_in_whatever_phase_it_failed(switch: str) -> None:
    plan = make_stopping({"a": [], "b": ["a"]})
    Action.objects.filter(pk=action(plan, "a").pk).update(input_parameters={"message": "a", switch: True})
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": "FAILED"}


def test_an_action_that_is_recovered_and_fails_takes_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Nop, "recover")
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING", on_failure="stop")
    Action.objects.filter(pk=action(plan, "a").pk).update(state="ONGOING", attempt=1)
    run_waiting()
    assert states(plan) == {"a": "FAILED", "b": "FAILED"}


def test_they_end_together_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is lost between the action's end and that of those that depend on it."""
    plan = make_stopping({"a": [], "b": ["a"]})
    behave(monkeypatch, a=error)
    monkeypatch.setattr("actions.engine.storage.end_dependents", lose)
    monkeypatch.setattr(
        "actions.engine.storage.PERSISTENTLY", lambda work, *phases, **options: work(*phases, **options)
    )
    from tests.actions.engine.test_interruptions import FakeLease

    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING")
    with pytest.raises(OperationalError):
        execution.execute(action(plan, "a"), FakeLease())
    assert states(plan) == {"a": "ONGOING", "b": "PENDING"}


def lose(*_: object) -> int:
    raise OperationalError("gone")


def test_while_the_plan_is_being_cancelled_what_depends_on_a_failed_one_is_cancelled_with_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_stopping({"a": [], "b": ["a"]})

    def fail_late(_: ActionType) -> Outcome:
        again(plan).abandon("alice")
        return Outcome(Answer.ERROR)

    behave(monkeypatch, a=fail_late)
    run_waiting()
    assert (states(plan), again(plan).state) == ({"a": "FAILED", "b": "CANCELLED"}, "CANCELLED")


def test_among_derived_actions_a_failure_always_stops_those_that_depend_on_it(
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


def test_what_waits_for_a_derived_one_that_failed_goes_on_first_and_then_stops_what_depends_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = behave(monkeypatch, a=deriving({"x": []}), x=error)
    plan = make_stopping({"a": [], "b": ["a"]})
    run_waiting()
    assert calls == ["a", "x", "a_goes_on"]
    assert set(states(plan).values()) == {"FAILED"}


def test_the_end_of_many_takes_one_statement(monkeypatch: pytest.MonkeyPatch) -> None:
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


def choose_stop_afterwards(plan: ActionPlan) -> None:
    cancel_by_signal(plan, "a")
    again(plan).choose_on_failure("stop")


def depend_on_it_afterwards(plan: ActionPlan) -> None:
    again(plan).choose_on_failure("stop")
    plan.actions.get(input_parameters__message="b").parent_links.all().delete()
    cancel_by_signal(plan, "a")
    change_dependencies(action(plan, "b").uuid, lambda _: [action(plan, "a").uuid])


@pytest.mark.parametrize("cancel_first", [choose_stop_afterwards, depend_on_it_afterwards])
def test_what_was_cancelled_before_takes_along_what_came_to_depend_on_it_later(
    cancel_first: Callable[[ActionPlan], None],
) -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"], "other": []})
    cancel_first(plan)
    foreseen = {one.action.uuid: (one.outcome, one.foresight.message) for one in preflight(again(plan)).prospects}
    again(plan).launch()
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED", "c": "CANCELLED", "other": "SUCCEEDED"}
    ended = plan.actions.exclude(pk=action(plan, "a").pk)
    assert foreseen == {one.uuid: (one.state, one.status_message) for one in ended}


def test_where_the_plan_says_continue_what_depends_on_what_was_cancelled_before_is_executed() -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    cancel_by_signal(plan, "a")
    again(plan).launch()
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "SUCCEEDED"}


def test_who_chooses_stop_while_an_applier_claims_the_plan_comes_before_it_or_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    cancel_by_signal(plan, "a")
    again(plan).launch()
    begin = Applier.begin

    def choose_first(self: Applier, found: ActionPlan) -> None:
        ActionPlan.objects.filter(pk=plan.pk, state="PENDING").update(on_failure="stop")
        begin(self, found)

    monkeypatch.setattr(Applier, "begin", choose_first)
    run_waiting()
    assert again(plan).state == "PENDING"
    run_waiting()
    assert states(plan) == {"a": "CANCELLED", "b": "CANCELLED"}
