"""An applier killed at each database write in a plan with planned derived actions."""

import pytest

from actions.operations.skipping import skip_action
from actions.types.base import DONE, Answer, Outcome
from plans.models import ActionPlan
from tests.actions.engine.derived.test_derived_actions import states
from tests.actions.engine.derived.test_planned_actions import edges
from tests.builders import action
from tests.plans.deriving import behave, deriving, plan_to_derive, waits
from tests.plans.kills import kill_at_every_change

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# With fewer kills, the appliers were not killed while they executed the plan.
AT_LEAST = 15


def make() -> ActionPlan:
    """Return a plan with the planned actions x, y (after x) and z (skipped) of a, and deep of x."""
    planned = {"a": {"x": [], "y": ["x"], "z": []}, "x": {"deep": []}}
    plan = plan_to_derive({"a": [], "b": ["a"]}, planned)
    skip_action(action(plan, "z").uuid, "alice")
    return plan


def test_planned_actions_run_once_and_ended_actions_are_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An action is executed again only if its applier died while it was running."""
    behave(monkeypatch, a=deriving({"more": []}), x=waits)
    plans = list(kill_at_every_change(monkeypatch, make))
    assert len(plans) > AT_LEAST
    for plan in plans:
        found = states(plan)
        assert (found.pop("z"), set(found.values()), plan.state) == ("SKIPPED", {"SUCCEEDED"}, "SUCCEEDED")
        assert sorted(found) == ["a", "b", "deep", "more", "x", "y"]
        turned = {("a", "x"), ("a", "y"), ("a", "z"), ("x", "deep")}
        assert edges(plan) == turned | {("a", "more"), ("y", "x"), ("b", "a")}
        for one in plan.actions.exclude(state="SKIPPED"):
            recoveries = one.events.filter(event="recover").count()
            assert one.attempt == (2 if one.has_derived else 1) + recoveries


@pytest.mark.parametrize(
    ("outcome", "a", "others"),
    [(DONE, "SUCCEEDED", "SKIPPED"), (Outcome(Answer.ERROR), "FAILED", "FAILED")],
    ids=["done", "failed"],
)
def test_planned_actions_end_with_an_action_that_does_not_derive_them(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, a: str, others: str
) -> None:
    behave(monkeypatch, a=lambda _: outcome)
    plans = list(kill_at_every_change(monkeypatch, make))
    assert len(plans) > 1
    for plan in plans:
        left = dict.fromkeys(("x", "y", "deep"), others)
        assert states(plan) == {"a": a, "b": "SUCCEEDED", "z": "SKIPPED", **left}
