"""An applier killed at each database write while actions derive others: the next applier completes the plan."""

import pytest
from pytest_django import Settings

from actions.types.base import ActionType, Answer, Outcome
from actions.types.nop import Nop
from plans.models import ActionPlan
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.builders import make_plan
from tests.plans.deriving import behave, deriving
from tests.plans.kills import kill_at_every_change

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
# With fewer kills, the appliers were not killed while they executed the plan.
AT_LEAST = 15


def make() -> ActionPlan:
    return make_plan({"a": [], "b": ["a"]}, state="PENDING")


def names(plan: ActionPlan) -> list[str]:
    return sorted(plan.actions.values_list("input_parameters__message", flat=True))


def test_actions_are_derived_once_and_ended_actions_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """An action is executed again only if its applier died while it was running."""
    behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}), x=deriving({"deep": []}))
    plans = list(kill_at_every_change(monkeypatch, make))
    assert len(plans) > AT_LEAST
    for plan in plans:
        assert names(plan) == ["a", "b", "deep", "x", "y"]
        assert (plan.state, set(states(plan).values())) == ("SUCCEEDED", {"SUCCEEDED"})
        for one in plan.actions.all():
            recoveries = one.events.filter(event="recover").count()
            assert one.attempt == (2 if one.has_derived else 1) + recoveries
            assert one.events.filter(event__in=["execute", "go_on"]).count() == one.attempt
            assert not one.events.filter(finish_time=None).exists()


def test_failed_derived_action_fails_its_children_and_the_deriving_action_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}), x=lambda _: Outcome(Answer.ERROR, "broken"))
    for plan in kill_at_every_change(monkeypatch, make):
        assert states(plan) == {"a": "FAILED", "b": "SUCCEEDED", "x": "FAILED", "y": "FAILED"}
        assert plan.state == "FAILED"
        assert plan.actions.get(input_parameters__message="a").events.filter(event="go_on").exists()


@pytest.mark.parametrize("name", ["x", "a_goes_on"])
def test_plan_cancelled_during_a_derived_action_or_a_continuation_ends_cancelled(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, name: str
) -> None:
    settings.POLL_INTERVAL = 0
    plans: list[ActionPlan] = []

    def cancel(self: ActionType) -> Outcome:
        if reload(plans[-1]).state == "ONGOING":
            reload(plans[-1]).abandon("alice")
        self.context.checkpoint()
        return Outcome(Answer.OK)

    def make_and_remember() -> ActionPlan:
        plans.append(make())
        return plans[-1]

    monkeypatch.setattr(Nop, "abort", lambda _: True)
    behave(monkeypatch, a=deriving({"x": []}), **{name: cancel})
    for plan in kill_at_every_change(monkeypatch, make_and_remember):
        assert plan.state == "CANCELLED"
        ends = states(plan)
        assert (ends["a"], ends["b"]) == ("CANCELLED", "CANCELLED")
        assert set(ends.values()) <= {"CANCELLED", "SUCCEEDED"}
