"""What a finished plan says of the actions that were skipped and that failed."""

import re

import pytest

from actions.models import Action
from plans.models import ActionPlan
from plans.summaries import summarize
from tests.builders import make_plan

pytestmark = pytest.mark.django_db


def make_skipped(number: int, finding: str = "Instance 7 not found") -> ActionPlan:
    plan = make_plan({str(index): [] for index in range(number)})
    for action in plan.actions.all():
        action.skip_automatically(finding)
        action.save_state()
    return plan


def summary(plan: ActionPlan) -> str | None:
    return summarize(plan.actions.all(), plan.actions.count_states())


def test_a_plan_without_incidents_says_nothing() -> None:
    assert summary(make_plan({"a": []})) is None


def test_a_person_is_named_by_user_name() -> None:
    plan = make_plan({"a": []})
    action = plan.actions.get()
    action.skip("alice", "keep it")
    action.save_state()
    assert summary(plan) == f"One or more actions were skipped. {action.uuid} by alice."


def test_a_finding_is_given_as_it_is() -> None:
    plan = make_skipped(1)
    assert summary(plan) == f"One or more actions were skipped. {plan.actions.get().uuid} Instance 7 not found."


def test_failures_are_counted_before_the_names() -> None:
    plan = make_skipped(2)
    Action.objects.filter(pk=plan.actions.first().pk).update(state="FAILED")
    assert (summary(plan) or "").startswith("One or more actions were skipped. 1 action failed. ")


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 50])
@pytest.mark.parametrize("length", [0, 10, 60, 150, 220])
def test_every_skipped_action_is_named_or_counted_within_255_characters(number: int, length: int) -> None:
    plan = make_skipped(number, "x" * length)
    text = summary(plan) or ""
    named = len(re.findall(r"[0-9a-f]{8}-", text))
    more = re.search(r" and (\d+) more\.$", text)
    assert len(text) <= 255
    assert named >= 1
    assert named + (int(more[1]) if more else 0) == number
