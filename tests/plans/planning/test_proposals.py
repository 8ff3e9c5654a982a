"""Proposing plans: a plan is validated, and stored in one transaction."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions.graph.proposals import ProposedAction
from actions.models import Action, ActionParent
from plans.models import ActionPlan, EfficacyIndicator
from plans.planning.proposals import propose
from watcher_site.refusals import Invalid

pytestmark = pytest.mark.django_db


def nop(*parents: ProposedAction) -> ProposedAction:
    return ProposedAction("nop", {"message": "hello"}, [parent.uuid for parent in parents])


def test_proposed_plan_is_recommended_with_its_actions_and_dependencies() -> None:
    first = nop()
    second = nop(first)
    plan = propose([first, second])
    edges = list(ActionParent.objects.values_list("child__uuid", "parent__uuid"))
    assert (plan.state, edges) == (ActionPlan.State.RECOMMENDED, [(second.uuid, first.uuid)])


def test_plan_without_actions_succeeds_immediately() -> None:
    assert ActionPlan.objects.get(pk=propose([]).pk).state == ActionPlan.State.SUCCEEDED


def test_plan_has_the_proposed_efficacy() -> None:
    efficacy = [{"name": "ratio", "description": "", "unit": "%", "value": 50}]
    plan = propose([nop()], indicators=[EfficacyIndicator(name="moves", value=4)], global_efficacy=efficacy)
    plan = ActionPlan.objects.get(pk=plan.pk)
    assert (plan.global_efficacy, plan.efficacy_indicators.get().value) == (efficacy, 4)


def test_dependency_cycle_is_refused() -> None:
    first, second = uuid4(), uuid4()
    cycle = [ProposedAction("nop", {}, [second], first), ProposedAction("nop", {}, [first], second)]
    with pytest.raises(Invalid, match=r"^parents: these actions wait for each other: "):
        propose(cycle)


def test_action_that_is_its_own_parent_is_refused() -> None:
    uuid = uuid4()
    with pytest.raises(Invalid, match=f"^parents: action {uuid} waits for itself"):
        propose([ProposedAction("nop", {}, [uuid], uuid)])


def test_parent_outside_of_the_plan_is_refused_by_uuid() -> None:
    stranger = uuid4()
    with pytest.raises(Invalid, match=f"^parents: {stranger}, parent of action .* is not an action of the plan"):
        propose([ProposedAction("nop", {}, [stranger])])


def test_repeated_action_is_refused() -> None:
    action = nop()
    with pytest.raises(Invalid, match="is given 2 times"):
        propose([action, action])


def test_refused_proposal_creates_no_plan() -> None:
    with pytest.raises(Invalid):
        propose([ProposedAction("nop", {}, [uuid4()])])
    assert not ActionPlan.objects.exists()


@pytest.mark.postgresql  # Django sends SQLite at most 999 values a statement, and so more statements.
def test_statement_count_does_not_depend_on_the_number_of_actions() -> None:
    def statements(size: int) -> int:
        actions = [nop()]
        for _ in range(size):
            actions.append(nop(actions[-1]))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            propose(actions)
        return len(queries)

    assert statements(2) == statements(400)


def planned(origin: ProposedAction, *parents: ProposedAction) -> ProposedAction:
    return ProposedAction("nop", {"message": "hello"}, [one.uuid for one in parents], derived_from=origin.uuid)


def test_planned_actions_wait_for_their_origin() -> None:
    origin = nop()
    first = planned(origin)
    second = planned(origin, first, origin)
    propose([second, first, origin])
    edges = set(ActionParent.objects.values_list("child__uuid", "parent__uuid"))
    assert edges == {(first.uuid, origin.uuid), (second.uuid, origin.uuid), (second.uuid, first.uuid)}
    assert set(Action.objects.values_list("uuid", "derived_from__uuid", "is_planned", "has_planned")) == {
        (origin.uuid, None, False, True),
        (first.uuid, origin.uuid, True, False),
        (second.uuid, origin.uuid, True, False),
    }


def test_planned_action_may_have_planned_actions() -> None:
    origin = nop()
    child = planned(origin)
    grandchild = planned(child)
    propose([origin, child, grandchild])
    assert list(Action.objects.order_by("pk").values_list("uuid", "derived_from__uuid", "has_planned")) == [
        (origin.uuid, None, True),
        (child.uuid, origin.uuid, True),
        (grandchild.uuid, child.uuid, False),
    ]


def test_proposed_data_is_stored_as_initial_data() -> None:
    propose([ProposedAction("nop", {}, data={"deletion": {"count": 2}}), ProposedAction("nop", {})])
    found = list(Action.objects.order_by("pk").values_list("data", "initial_data"))
    assert found == [({"deletion": {"count": 2}},) * 2, ({}, None)]


def test_origin_outside_of_the_plan_is_refused_by_uuid() -> None:
    stranger = uuid4()
    with pytest.raises(
        Invalid, match=f"^derived_from: {stranger}, which derives action .*, is not an action of the plan"
    ):
        propose([ProposedAction("nop", {}, derived_from=stranger)])


def test_action_derived_from_itself_is_refused() -> None:
    uuid = uuid4()
    with pytest.raises(Invalid, match=f"^derived_from: action {uuid} is derived from itself"):
        propose([ProposedAction("nop", {}, uuid=uuid, derived_from=uuid)])


def test_actions_derived_from_each_other_are_refused() -> None:
    first, second = uuid4(), uuid4()
    cycle = [ProposedAction("nop", {}, uuid=a, derived_from=b) for a, b in ((first, second), (second, first))]
    with pytest.raises(Invalid, match=r"^derived_from: these actions are derived from each other: "):
        propose(cycle)


def test_action_must_not_wait_for_an_action_derived_from_another() -> None:
    origin = nop()
    child = planned(origin)
    with pytest.raises(
        Invalid, match=f"derived from none, must not wait for {child.uuid}, derived from {origin.uuid}"
    ):
        propose([origin, child, nop(child)])


def test_planned_action_must_not_wait_for_actions_outside_of_its_origin() -> None:
    origin, other = nop(), nop()
    with pytest.raises(
        Invalid, match=f"derived from {origin.uuid}, must not wait for {other.uuid}, derived from none"
    ):
        propose([origin, other, planned(origin, other)])


@pytest.mark.postgresql  # Django sends SQLite at most 999 values a statement, and so more statements.
def test_statement_count_does_not_depend_on_the_number_of_planned_actions() -> None:
    def statements(size: int) -> int:
        origin = nop()
        with CaptureQueriesContext(connection) as queries:
            propose([origin, *(planned(origin) for _ in range(size))])
        return len(queries)

    assert statements(2) == statements(400)
