"""Plans come into the tables whole and sound, or not at all."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions.models import ActionParent
from actions.proposals import ProposedAction
from plans.models import ActionPlan, EfficacyIndicator
from plans.proposals import propose
from watcher_site.refusals import Invalid

pytestmark = pytest.mark.django_db


def nop(*parents: ProposedAction) -> ProposedAction:
    return ProposedAction("nop", {"message": "hello"}, [parent.uuid for parent in parents])


def test_a_proposed_plan_is_recommended_with_its_actions_and_their_parents() -> None:
    first = nop()
    second = nop(first)
    plan = propose([first, second])
    edges = list(ActionParent.objects.values_list("child__uuid", "parent__uuid"))
    assert (plan.state, edges) == (ActionPlan.State.RECOMMENDED, [(second.uuid, first.uuid)])


def test_a_plan_without_actions_succeeds_at_once() -> None:
    assert ActionPlan.objects.get(pk=propose([]).pk).state == ActionPlan.State.SUCCEEDED


def test_a_plan_keeps_its_efficacy() -> None:
    efficacy = [{"name": "ratio", "description": "", "unit": "%", "value": 50}]
    plan = propose([nop()], indicators=[EfficacyIndicator(name="moves", value=4)], global_efficacy=efficacy)
    plan = ActionPlan.objects.get(pk=plan.pk)
    assert (plan.global_efficacy, plan.efficacy_indicators.get().value) == (efficacy, 4)


def test_actions_that_wait_for_each_other_are_refused() -> None:
    first, second = uuid4(), uuid4()
    cycle = [ProposedAction("nop", {}, [second], first), ProposedAction("nop", {}, [first], second)]
    with pytest.raises(Invalid, match=r"^parents: these actions wait for each other: "):
        propose(cycle)


def test_an_action_that_waits_for_itself_is_refused() -> None:
    uuid = uuid4()
    with pytest.raises(Invalid, match=f"^parents: action {uuid} waits for itself"):
        propose([ProposedAction("nop", {}, [uuid], uuid)])


def test_a_parent_that_is_no_action_of_the_plan_is_refused_by_name() -> None:
    stranger = uuid4()
    with pytest.raises(Invalid, match=f"^parents: {stranger}, parent of action .* is no action of the plan"):
        propose([ProposedAction("nop", {}, [stranger])])


def test_the_same_action_twice_is_refused() -> None:
    action = nop()
    with pytest.raises(Invalid, match="stands there 2 times"):
        propose([action, action])


def test_a_refused_proposal_leaves_no_plan() -> None:
    with pytest.raises(Invalid):
        propose([ProposedAction("nop", {}, [uuid4()])])
    assert not ActionPlan.objects.exists()


@pytest.mark.postgresql
def test_a_large_plan_takes_as_many_statements_as_a_small_one() -> None:
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
