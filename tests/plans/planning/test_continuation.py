"""Continuing a FAILED or CANCELLED plan by a new plan of its unsuccessful actions."""

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
    """Make an ended plan of succeeded actions, except for those named in ``states``."""
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
def test_unsuccessful_actions_are_recommended_in_the_new_plan(state: str) -> None:
    plan = ended({"a": [], "b": [], "c": []}, {"b": "FAILED", "c": "CANCELLED"}, state)
    successor = continue_plan(plan)
    assert graph_of(successor) == {"b": set(), "c": set()}
    assert (successor.state, successor.actions.count_states()) == ("RECOMMENDED", {"PENDING": 2})
    assert (successor.audit, successor.strategy, successor.continues) == (plan.audit, plan.strategy, plan)


def test_skipped_actions_are_not_continued() -> None:
    assert graph_of(continue_plan(ended({"a": [], "b": []}, {"a": "FAILED", "b": "SKIPPED"}))) == {"a": set()}


def test_derived_actions_are_not_continued_but_their_origin_is() -> None:
    plan = ended({"x": [], "y": [], "a": ["x", "y"]}, {"a": "FAILED", "x": "FAILED"})
    plan.actions.exclude(input_parameters__message="a").update(derived_from=action(plan, "a"))
    plan.actions.filter(input_parameters__message="a").update(has_derived=True)
    successor = continue_plan(plan)
    assert graph_of(successor) == {"a": set()}
    assert not action(successor, "a").has_derived


def test_dependencies_through_succeeded_and_skipped_actions_are_kept() -> None:
    graph = {"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["a", "d"]}
    states = {"a": "FAILED", "c": "SKIPPED", "d": "CANCELLED", "e": "FAILED"}
    assert graph_of(continue_plan(ended(graph, states))) == {"a": set(), "d": {"a"}, "e": {"a", "d"}}


def test_continued_action_keeps_type_parameters_and_timeout() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    uuid = plan.actions.get().uuid
    plan.actions.update(
        action_type="sleep", name=generated_name("sleep", uuid), input_parameters={"duration": 3}, timeout=20
    )
    copied = continue_plan(plan).actions.get()
    assert (copied.action_type, copied.input_parameters, copied.timeout) == ("sleep", {"duration": 3}, 20)
    assert (copied.attempt, copied.status_message, copied.start_time) == (0, None, None)
    assert copied.name.endswith(str(copied.uuid)[:8])


def test_continued_action_keeps_its_given_name() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    plan.actions.update(name="Replace web-1")
    assert continue_plan(plan).actions.get().name == "Replace web-1"


def test_reverted_actions_are_continued() -> None:
    plan = ended({"a": [], "b": [], "c": []}, {"c": "FAILED"})
    ActionEvent.objects.create(action=action(plan, "a"), event="revert", result=ActionEvent.Result.SUCCESS)
    ActionEvent.objects.create(action=action(plan, "b"), event="revert", result=ActionEvent.Result.ERROR)
    assert set(graph_of(continue_plan(plan))) == {"a", "c"}


def test_continuation_runs_to_its_end() -> None:
    successor = continue_plan(ended({"a": [], "b": ["a"]}, {"a": "FAILED", "b": "CANCELLED"}))
    successor.launch()
    run_waiting()
    assert ActionPlan.objects.get(pk=successor.pk).state == "SUCCEEDED"


def test_failed_continuation_can_be_continued() -> None:
    successor = continue_plan(ended({"a": []}, {"a": "FAILED"}))
    ActionPlan.objects.filter(pk=successor.pk).update(state="FAILED")
    successor.actions.update(state="FAILED")
    assert continue_plan(successor).continues == successor


@pytest.mark.parametrize("state", sorted(set(ActionPlan.State.values) - {"FAILED", "CANCELLED"}))
def test_plan_in_another_state_cannot_be_continued(state: str) -> None:
    with pytest.raises(Conflict, match=f"can be continued, and .* is {state}"):
        continue_plan(ended({"a": []}, {"a": "FAILED"}, state))


def test_second_continuation_is_refused_with_the_uuid_of_the_first() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    successor = continue_plan(plan)
    with pytest.raises(Conflict, match=f"was continued already, by {successor.uuid}"):
        continue_plan(plan)


def test_plan_can_be_continued_again_after_its_continuation_is_deleted() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    first = continue_plan(plan)
    first.remove()
    assert plan.continuation() is None
    assert continue_plan(plan) != first


def test_plan_without_unfinished_actions_cannot_be_continued() -> None:
    with pytest.raises(Conflict, match="nothing to continue"):
        continue_plan(ended({"a": [], "b": []}, {"b": "SKIPPED"}, "CANCELLED"))


def test_deleted_plan_cannot_be_continued() -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    plan.remove()
    with pytest.raises(NotFound):
        continue_plan(plan)


def test_plan_with_a_dependency_cycle_cannot_be_continued() -> None:
    with pytest.raises(Conflict, match="wait for each other"):
        continue_plan(ended({"a": ["b"], "b": ["a"]}, {"a": "CANCELLED", "b": "CANCELLED"}))


def test_continuation_with_too_many_dependencies_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continuation, "MOST_EDGES", 3)
    graph = {"a": [], "b": [], "join": ["a", "b"], "c": ["join"], "d": ["join"]}
    with pytest.raises(Conflict, match="too many dependencies"):
        continue_plan(ended(graph, dict.fromkeys("abcd", "FAILED")))
    assert not ActionPlan.objects.filter(state="RECOMMENDED").exists()


@pytest.mark.postgresql  # Django sends SQLite at most 999 values a statement, and so more statements.
@pytest.mark.parametrize("size", [2, 40])
def test_statement_count_does_not_depend_on_the_number_of_actions(size: int) -> None:
    names = [str(number) for number in range(size)]
    graph = {name: names[:number][-1:] for number, name in enumerate(names)}
    plan = ended(graph, dict.fromkeys(names, "FAILED"))
    with CaptureQueriesContext(connection) as queries:
        continue_plan(plan)
    # The plan, its continuation, its actions, its graph in two queries, the version of the exclusions; then the new
    # plan, its actions and its graph.
    assert [word for word in words(queries) if word in {"SELECT", "INSERT"}] == ["SELECT"] * 6 + ["INSERT"] * 3


def planned_and_ended(states: Mapping[str, str], **columns: object) -> ActionPlan:
    """Make an ended plan in which a had the planned actions x, y and z; y waited for x, and b for a."""
    plan = plan_to_derive({"a": [], "b": ["a"]}, {"a": {"x": [], "y": ["x"], "z": []}}, state="FAILED")
    for found in plan.actions.all():
        state = states.get(found.input_parameters["message"], "SUCCEEDED")
        Action.objects.filter(pk=found.pk).update(state=state)
    plan.actions.filter(has_planned=True).update(**columns)
    return plan


def test_unfinished_planned_actions_are_planned_again() -> None:
    plan = planned_and_ended({"a": "FAILED", "x": "FAILED", "y": "FAILED"})
    successor = continue_plan(plan)
    assert graph_of(successor) == {"a": set(), "x": {"a"}, "y": {"a", "x"}}
    assert set(successor.actions.filter(is_planned=True).values_list("derived_from")) == {(action(successor, "a").pk,)}
    assert successor.actions.get(has_planned=True) == action(successor, "a")


def test_unfinished_planned_actions_of_a_waiting_action_are_planned_again() -> None:
    plan = planned_and_ended({"a": "FAILED", "y": "FAILED", "b": "FAILED"}, has_derived=True)
    reverse_planned_links(action(plan, "a"))
    successor = continue_plan(plan)
    assert graph_of(successor) == {"a": set(), "y": {"a"}, "b": {"a"}}
    assert not action(successor, "a").has_derived


def test_unplanned_derived_actions_are_not_continued() -> None:
    plan = planned_and_ended({"a": "FAILED", "x": "FAILED"}, has_derived=True)
    reverse_planned_links(action(plan, "a"))
    write_actions(plan.pk, [ProposedAction("nop", {"message": "more"})], derived_from=action(plan, "a"))
    plan.actions.filter(input_parameters__message="more").update(state="FAILED")
    assert graph_of(continue_plan(plan)) == {"a": set(), "x": {"a"}}


def test_planned_actions_of_a_succeeded_action_are_not_continued() -> None:
    plan = planned_and_ended({"x": "FAILED", "b": "FAILED"}, has_derived=True)
    assert graph_of(continue_plan(plan)) == {"b": set()}


def test_planned_action_skipped_by_a_user_stays_skipped_in_the_continuation() -> None:
    """If it were omitted, the continued action would derive it again."""
    plan = planned_and_ended({"a": "FAILED", "z": "SKIPPED"}, has_derived=True)
    plan.actions.filter(input_parameters__message="z").update(skipped_by="alice", reason="in use")
    successor = continue_plan(plan)
    z = action(successor, "z")
    assert graph_of(successor) == {"a": set(), "z": {"a"}}
    assert (z.state, z.skipped_by, z.status_message) == ("SKIPPED", "alice", "Action skipped by user. Reason: in use")


def test_planned_actions_skipped_with_their_origin_stay_skipped() -> None:
    plan = plan_to_derive({"a": []}, {"a": {"x": []}, "x": {"deep": []}}, state="FAILED")
    plan.actions.filter(input_parameters__message="a").update(state="FAILED")
    plan.actions.filter(input_parameters__message="x").update(state="SKIPPED", skipped_by="alice")
    plan.actions.filter(input_parameters__message="deep").update(state="SKIPPED")
    successor = continue_plan(plan)
    assert successor.actions.count_states() == {"PENDING": 1, "SKIPPED": 2}
    assert action(successor, "deep").skipped_by is None


def test_automatically_skipped_planned_actions_are_not_continued() -> None:
    assert graph_of(continue_plan(planned_and_ended({"a": "FAILED", "z": "SKIPPED"}))) == {"a": set()}


def test_continued_action_has_its_initial_data() -> None:
    plan = propose([ProposedAction("nop", {"message": "a"}, data={"nodes": ["one"]})])
    ActionPlan.objects.filter(pk=plan.pk).update(state="FAILED")
    plan.actions.update(state="FAILED", data={"nodes": ["one"], "step": 2})
    assert action(continue_plan(plan), "a").data == {"nodes": ["one"]}


def test_planned_actions_run_in_the_continuation(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [Outcome(Answer.ERROR), DONE]
    calls = behave(monkeypatch, a=waits, x=lambda _: answers.pop(0))
    plan = plan_to_derive({"a": []}, {"a": {"x": [], "y": ["x"], "z": []}})
    run_waiting()
    successor = continue_plan(ActionPlan.objects.get(pk=plan.pk))
    calls.clear()
    successor.launch()
    run_waiting()
    assert calls == ["a", "x", "y", "a_goes_on"]
    assert ActionPlan.objects.get(pk=successor.pk).state == "SUCCEEDED"


NIGHTS = {"opens": "22:00", "closes": "04:00"}


def scheduled(**columns: object) -> ActionPlan:
    plan = ended({"a": []}, {"a": "FAILED"})
    ActionPlan.objects.filter(pk=plan.pk).update(**columns)
    return continue_plan(plan)


def test_continuation_keeps_the_maintenance_window() -> None:
    successor = scheduled(zone="Europe/Berlin", window=NIGHTS)
    assert (successor.zone, successor.window) == ("Europe/Berlin", NIGHTS)
    assert successor.opens_at is not None
    assert successor.closes_at is not None
    assert successor.opens_at < successor.closes_at


@pytest.mark.parametrize(("days", "is_kept"), [(1, True), (-1, False)])
def test_continuation_keeps_only_a_start_time_in_the_future(days: int, is_kept: bool) -> None:
    start_at = timezone.now() + timedelta(days=days)
    successor = scheduled(start_at=start_at)
    assert (successor.start_at, successor.opens_at) == ((start_at, start_at) if is_kept else (None, None))


def test_continuation_drops_an_expired_window() -> None:
    successor = scheduled(zone="Europe/Berlin", window={**NIGHTS, "last_day": "2026-02-01"})
    assert (successor.zone, successor.window, successor.hours) == ("Europe/Berlin", None, (None, None))
