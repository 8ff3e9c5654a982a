"""A FAILED or CANCELLED plan can be continued by a new plan of the actions that did not succeed."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from actions.engine.children import reverse_planned_links
from actions.graph.proposals import ProposedAction, write_actions
from actions.models import Action, ActionEvent, ActionParent
from actions.models.naming import generated_name
from actions.types.base import DONE, Answer, Outcome
from plans.models import ActionPlan
from plans.planning import continuation
from plans.planning.continuation import continue_plan
from plans.planning.proposals import propose
from tests.builders import action, make_audit, make_plan, make_strategy
from tests.plans.deriving import behave, plan_to_derive, waits
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
def test_what_did_not_succeed_is_recommended_again(state: str) -> None:
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
    copied = continue_plan(plan).actions.get()
    assert (copied.action_type, copied.input_parameters, copied.timeout) == ("sleep", {"duration": 3}, 20)
    assert (copied.attempt, copied.status_message, copied.start_time) == (0, None, None)
    assert copied.name.endswith(str(copied.uuid)[:8])


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
    monkeypatch.setattr(continuation, "MOST_EDGES", 3)
    graph = {"a": [], "b": [], "join": ["a", "b"], "c": ["join"], "d": ["join"]}
    with pytest.raises(Conflict, match="too many dependencies"):
        continue_plan(ended(graph, dict.fromkeys("abcd", "FAILED")))
    assert not ActionPlan.objects.filter(state="RECOMMENDED").exists()


@pytest.mark.postgresql  # Django sends SQLite at most 999 values a statement, and so more statements.
@pytest.mark.parametrize("size", [2, 40])
def test_the_statements_do_not_grow_with_the_plan(size: int) -> None:
    names = [str(number) for number in range(size)]
    graph = {name: names[:number][-1:] for number, name in enumerate(names)}
    plan = ended(graph, dict.fromkeys(names, "FAILED"))
    with CaptureQueriesContext(connection) as queries:
        continue_plan(plan)
    # The plan, its follower, its actions, its graph in two, the mark of the exclusions; then the new plan, its actions
    # and its graph.
    assert [word for word in words(queries) if word in {"SELECT", "INSERT"}] == ["SELECT"] * 6 + ["INSERT"] * 3


def planned_and_ended(states: Mapping[str, str], **columns: object) -> ActionPlan:
    """Make a plan that is over, of which a was to derive x, y, which waits for x, and z; b waited for a."""
    plan = plan_to_derive({"a": [], "b": ["a"]}, {"a": {"x": [], "y": ["x"], "z": []}}, state="FAILED")
    for found in plan.actions.all():
        state = states.get(found.input_parameters["message"], "SUCCEEDED")
        Action.objects.filter(pk=found.pk).update(state=state)
    plan.actions.filter(has_planned=True).update(**columns)
    return plan


def test_what_was_planned_and_not_done_is_planned_again() -> None:
    plan = planned_and_ended({"a": "FAILED", "x": "FAILED", "y": "FAILED"})
    follower = continue_plan(plan)
    assert graph_of(follower) == {"a": set(), "x": {"a"}, "y": {"a", "x"}}
    assert set(follower.actions.filter(is_planned=True).values_list("derived_from")) == {(action(follower, "a").pk,)}
    assert follower.actions.get(has_planned=True) == action(follower, "a")


def test_so_it_is_where_the_action_waited_for_it() -> None:
    plan = planned_and_ended({"a": "FAILED", "y": "FAILED", "b": "FAILED"}, has_derived=True)
    reverse_planned_links(action(plan, "a"))
    follower = continue_plan(plan)
    assert graph_of(follower) == {"a": set(), "y": {"a"}, "b": {"a"}}
    assert not action(follower, "a").has_derived


def test_what_was_derived_beside_it_stays_out() -> None:
    plan = planned_and_ended({"a": "FAILED", "x": "FAILED"}, has_derived=True)
    reverse_planned_links(action(plan, "a"))
    write_actions(plan.pk, [ProposedAction("nop", {"message": "more"})], derived_from=action(plan, "a"))
    plan.actions.filter(input_parameters__message="more").update(state="FAILED")
    assert graph_of(continue_plan(plan)) == {"a": set(), "x": {"a"}}


def test_what_was_planned_stays_out_where_the_action_that_derived_it_does() -> None:
    plan = planned_and_ended({"x": "FAILED", "b": "FAILED"}, has_derived=True)
    assert graph_of(continue_plan(plan)) == {"b": set()}


def test_what_was_planned_and_a_person_skipped_stays_skipped() -> None:
    """Left out, it would be taken for something that nobody has planned yet."""
    plan = planned_and_ended({"a": "FAILED", "z": "SKIPPED"}, has_derived=True)
    plan.actions.filter(input_parameters__message="z").update(skipped_by="alice", reason="in use")
    follower = continue_plan(plan)
    z = action(follower, "z")
    assert graph_of(follower) == {"a": set(), "z": {"a"}}
    assert (z.state, z.skipped_by, z.status_message) == ("SKIPPED", "alice", "Action skipped by user. Reason: in use")


def test_what_was_skipped_with_it_stays_so() -> None:
    plan = plan_to_derive({"a": []}, {"a": {"x": []}, "x": {"deep": []}}, state="FAILED")
    plan.actions.filter(input_parameters__message="a").update(state="FAILED")
    plan.actions.filter(input_parameters__message="x").update(state="SKIPPED", skipped_by="alice")
    plan.actions.filter(input_parameters__message="deep").update(state="SKIPPED")
    follower = continue_plan(plan)
    assert follower.actions.count_states() == {"PENDING": 1, "SKIPPED": 2}
    assert action(follower, "deep").skipped_by is None


def test_what_was_planned_and_found_out_that_it_is_not_needed_stays_out() -> None:
    assert graph_of(continue_plan(planned_and_ended({"a": "FAILED", "z": "SKIPPED"}))) == {"a": set()}


def test_an_action_begins_again_with_the_data_that_it_was_proposed_with() -> None:
    plan = propose([ProposedAction("nop", {"message": "a"}, data={"nodes": ["one"]})])
    ActionPlan.objects.filter(pk=plan.pk).update(state="FAILED")
    plan.actions.update(state="FAILED", data={"nodes": ["one"], "step": 2})
    assert action(continue_plan(plan), "a").data == {"nodes": ["one"]}


def test_what_was_planned_runs_in_the_follower(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [Outcome(Answer.ERROR), DONE]
    calls = behave(monkeypatch, a=waits, x=lambda _: answers.pop(0))
    plan = plan_to_derive({"a": []}, {"a": {"x": [], "y": ["x"], "z": []}})
    run_waiting()
    follower = continue_plan(ActionPlan.objects.get(pk=plan.pk))
    calls.clear()
    follower.launch()
    run_waiting()
    assert calls == ["a", "x", "y", "a_goes_on"]
    assert ActionPlan.objects.get(pk=follower.pk).state == "SUCCEEDED"


NIGHTS = {"opens": "22:00", "closes": "04:00"}


def scheduled(**columns: object) -> ActionPlan:
    plan = ended({"a": []}, {"a": "FAILED"})
    ActionPlan.objects.filter(pk=plan.pk).update(**columns)
    return continue_plan(plan)


def test_the_maintenance_window_holds_for_what_is_left() -> None:
    follower = scheduled(zone="Europe/Berlin", window=NIGHTS)
    assert (follower.zone, follower.window) == ("Europe/Berlin", NIGHTS)
    assert follower.opens_at is not None
    assert follower.closes_at is not None
    assert follower.opens_at < follower.closes_at


@pytest.mark.parametrize(("days", "holds"), [(1, True), (-1, False)])
def test_a_time_holds_that_is_still_to_come(days: int, holds: bool) -> None:
    start_at = timezone.now() + timedelta(days=days)
    follower = scheduled(start_at=start_at)
    assert (follower.start_at, follower.opens_at) == ((start_at, start_at) if holds else (None, None))


def test_a_window_that_is_over_does_not_hold() -> None:
    follower = scheduled(zone="Europe/Berlin", window={**NIGHTS, "last_day": "2026-02-01"})
    assert (follower.zone, follower.window, follower.hours) == ("Europe/Berlin", None, (None, None))
