"""What a FAILED or CANCELLED plan left undone becomes a plan of its own."""

from collections.abc import Mapping

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions.models import Action, ActionEvent, ActionParent
from actions.naming import generated_name
from plans import continuing
from plans.continuing import continue_plan
from plans.models import ActionPlan
from tests.builders import action, make_audit, make_plan, make_strategy
from tests.plans.inline import run_waiting
from tests.watcher_site.test_query_counts import words
from watcher_site.refusals import Conflict, NotFound

pytestmark = pytest.mark.django_db


def ended(graph: Mapping[str, list[str]], states: Mapping[str, str], state: str = "FAILED") -> ActionPlan:
    """Make a plan that is over, of actions that succeeded but for those that ``states`` names."""
    plan = make_plan(graph, state=state, audit=make_audit(), strategy=make_strategy())
    for name in graph:
        found = action(plan, name)
        Action.objects.filter(pk=found.pk).update(state=states.get(name, "SUCCEEDED"))
    return plan


def graph_of(plan: ActionPlan) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {found.input_parameters["message"]: set() for found in plan.actions.all()}
    edges = ActionParent.objects.filter(child__action_plan=plan)
    for child, parent in edges.values_list("child__input_parameters__message", "parent__input_parameters__message"):
        graph[child].add(parent)
    return graph


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_what_did_not_succeed_is_recommended_anew(state: str) -> None:
    plan = ended({"a": [], "b": [], "c": []}, {"b": "FAILED", "c": "CANCELLED"}, state)
    follower = continue_plan(plan)
    assert graph_of(follower) == {"b": set(), "c": set()}
    assert (follower.state, follower.actions.count_states()) == ("RECOMMENDED", {"PENDING": 2})
    assert (follower.audit, follower.strategy, follower.continues) == (plan.audit, plan.strategy, plan)


def test_what_was_skipped_stays_out() -> None:
    assert graph_of(continue_plan(ended({"a": [], "b": []}, {"a": "FAILED", "b": "SKIPPED"}))) == {"a": set()}


def test_what_an_action_derived_stays_out_and_the_action_itself_does_not() -> None:
    plan = ended({"x": [], "y": [], "a": ["x", "y"]}, {"a": "FAILED", "x": "FAILED"})
    plan.actions.exclude(input_parameters__message="a").update(derived_from=action(plan, "a"))
    plan.actions.filter(input_parameters__message="a").update(has_derived=True)
    follower = continue_plan(plan)
    assert graph_of(follower) == {"a": set()}
    assert not action(follower, "a").has_derived


def test_dependencies_are_kept_also_by_way_of_what_succeeded_or_was_skipped() -> None:
    graph = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["a", "d"]}
    states = {"a": "FAILED", "c": "SKIPPED", "d": "CANCELLED", "e": "FAILED"}
    assert graph_of(continue_plan(ended(graph, states))) == {"a": set(), "d": {"a"}, "e": {"a", "d"}}


def test_an_action_keeps_its_type_its_parameters_and_its_timeout() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    uuid = plan.actions.get().uuid
    plan.actions.update(
        action_type="sleep", name=generated_name("sleep", uuid), input_parameters={"duration": 3}, timeout=20
    )
    done_anew = continue_plan(plan).actions.get()
    assert (done_anew.action_type, done_anew.input_parameters, done_anew.timeout) == ("sleep", {"duration": 3}, 20)
    assert (done_anew.attempt, done_anew.status_message, done_anew.start_time) == (0, None, None)
    assert done_anew.name.endswith(str(done_anew.uuid)[:8])


def test_an_action_keeps_a_name_that_was_given_to_it() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    plan.actions.update(name="Replace web-1")
    assert continue_plan(plan).actions.get().name == "Replace web-1"


def test_what_a_rollback_reverted_is_to_be_done_again() -> None:
    plan = ended({"a": [], "b": [], "c": []}, {"c": "FAILED"})
    ActionEvent.objects.create(action=action(plan, "a"), event="revert", result=ActionEvent.Result.SUCCESS)
    ActionEvent.objects.create(action=action(plan, "b"), event="revert", result=ActionEvent.Result.ERROR)
    assert set(graph_of(continue_plan(plan))) == {"a", "c"}


def test_the_follower_runs_like_any_other_plan() -> None:
    follower = continue_plan(ended({"a": [], "b": ["a"]}, {"a": "FAILED", "b": "CANCELLED"}))
    follower.launch()
    run_waiting()
    assert ActionPlan.objects.get(pk=follower.pk).state == "SUCCEEDED"


def test_a_follower_that_failed_can_be_continued_in_turn() -> None:
    follower = continue_plan(ended({"a": []}, {"a": "FAILED"}))
    ActionPlan.objects.filter(pk=follower.pk).update(state="FAILED")
    follower.actions.update(state="FAILED")
    assert continue_plan(follower).continues == follower


@pytest.mark.parametrize("state", sorted(set(ActionPlan.State.values) - {"FAILED", "CANCELLED"}))
def test_a_plan_in_another_state_is_not_continued(state: str) -> None:
    with pytest.raises(Conflict, match=f"can be continued, and .* is {state}"):
        continue_plan(ended({"a": []}, {"a": "FAILED"}, state))


def test_a_second_continue_names_the_first() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    follower = continue_plan(plan)
    with pytest.raises(Conflict, match=f"was continued already, by {follower.uuid}"):
        continue_plan(plan)


def test_once_the_follower_is_deleted_the_plan_can_be_continued_again() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    first = continue_plan(plan)
    first.remove()
    assert plan.continuation() is None
    assert continue_plan(plan) != first


def test_a_plan_of_which_nothing_is_left_undone_is_not_continued() -> None:
    with pytest.raises(Conflict, match="nothing to continue"):
        continue_plan(ended({"a": [], "b": []}, {"b": "SKIPPED"}, "CANCELLED"))


def test_a_deleted_plan_is_not_found() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    plan.remove()
    with pytest.raises(NotFound):
        continue_plan(plan)


def test_actions_that_wait_for_each_other_cannot_be_continued() -> None:
    with pytest.raises(Conflict, match="wait for each other"):
        continue_plan(ended({"a": ["b"], "b": ["a"]}, {"a": "CANCELLED", "b": "CANCELLED"}))


def test_more_dependencies_than_can_be_written_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuing, "MOST_EDGES", 3)
    graph = {"a": [], "b": [], "join": ["a", "b"], "c": ["join"], "d": ["join"]}
    with pytest.raises(Conflict, match="too many dependencies"):
        continue_plan(ended(graph, dict.fromkeys("abcd", "FAILED")))
    assert not ActionPlan.objects.filter(state="RECOMMENDED").exists()


@pytest.mark.parametrize("size", [2, 40])
def test_the_statements_do_not_grow_with_the_plan(size: int) -> None:
    names = [str(number) for number in range(size)]
    graph = {name: names[:number][-1:] for number, name in enumerate(names)}
    plan = ended(graph, dict.fromkeys(names, "FAILED"))
    with CaptureQueriesContext(connection) as queries:
        continue_plan(plan)
    # The plan, its follower, its actions, its graph in two; then the new plan, its actions, its graph.
    assert [word for word in words(queries) if word in {"SELECT", "INSERT"}] == ["SELECT"] * 5 + ["INSERT"] * 3
