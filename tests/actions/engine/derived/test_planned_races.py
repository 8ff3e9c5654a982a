"""Races of planned derived actions with changes while their links are reversed, or while their plan starts."""

import pytest

from actions.engine import children, execution
from actions.models import Action
from actions.operations import skipping
from actions.operations.signals import signal_action
from actions.operations.skipping import restore_action, skip_action
from actions.types.base import Answer, Outcome
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.actions.engine.derived.test_derived_races import run_to_end
from tests.actions.engine.derived.test_planned_actions import X_THEN_Y, A, edges
from tests.builders import action
from tests.interleaving import Rival, interrupt_after, interrupt_before
from tests.plans.deriving import behave, plan_to_derive, waits
from tests.plans.inline import claim
from tests.plans.test_interleavings import refused
from watcher_site.models import Service

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def applier() -> Service:
    return Service.register(Service.APPLIER, "one")


def running(applier: Service) -> ActionPlan:
    return plan_to_derive(A, X_THEN_Y, state="ONGOING", applier=applier)


def test_cancel_of_the_plan_during_the_reversal_keeps_the_links(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    behave(monkeypatch, a=waits)
    plan = running(applier)
    person = Rival(lambda: reload(plan).abandon("alice"))
    interrupt_after(monkeypatch, children, "reverse_planned_links", person)
    execution.execute(action(plan, "a"), PlanLease.of(plan, applier))
    person.result()
    assert edges(plan) == {("x", "a"), ("y", "a"), ("y", "x")}
    assert run_to_end(plan).state == "CANCELLED"
    assert set(states(plan).values()) == {"CANCELLED"}


@pytest.mark.parametrize("delay", [0, 3600])
def test_cancel_of_a_planned_action_during_the_reversal_lets_the_action_continue(
    monkeypatch: pytest.MonkeyPatch, applier: Service, delay: int
) -> None:
    calls = behave(monkeypatch, a=lambda _: Outcome(Answer.WAIT, delay=delay))
    plan = running(applier)
    x = action(plan, "x").uuid
    person = Rival(lambda: signal_action(x, Action.Signal.CANCEL, "alice"))
    interrupt_after(monkeypatch, children, "reverse_planned_links", person)
    assert execution.execute(action(plan, "a"), PlanLease.of(plan, applier))
    person.result()
    run_to_end(plan)
    assert calls == ["a", "a_goes_on"]
    assert set(states(plan).values()) == {"CANCELLED"}


def test_adoption_of_the_plan_during_the_reversal_leaves_it_to_the_new_applier(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    calls = behave(monkeypatch, a=waits)
    plan = running(applier)
    other = Service.register(Service.APPLIER, "two")
    adoption = Rival(lambda: ActionPlan.objects.filter(pk=plan.pk).update(applier=other))
    interrupt_after(monkeypatch, children, "reverse_planned_links", adoption)
    assert not execution.execute(action(plan, "a"), PlanLease.of(plan, applier))
    adoption.result()
    assert ("x", "a") in edges(plan)
    Action.objects.filter(owner=applier).update(owner=None)
    assert run_to_end(plan).state == "SUCCEEDED"
    assert calls == ["a", "a", "x", "y", "a_goes_on"]


def test_planned_action_cannot_be_skipped_during_the_reversal(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    behave(monkeypatch, a=waits)
    plan = running(applier)
    x = action(plan, "x").uuid
    person = Rival(lambda: refused(lambda: skip_action(x, "alice")))
    interrupt_after(monkeypatch, children, "reverse_planned_links", person)
    assert execution.execute(action(plan, "a"), PlanLease.of(plan, applier))
    assert person.result()
    assert run_to_end(plan).state == "SUCCEEDED"
    assert set(states(plan).values()) == {"SUCCEEDED"}


def test_claim_sees_an_action_and_its_planned_actions_skipped_together(
    monkeypatch: pytest.MonkeyPatch, applier: Service
) -> None:
    plan = plan_to_derive(A, X_THEN_Y)
    mine = reload(plan)

    def claim_and_look() -> set[str]:
        claim(mine, applier)
        return set(states(mine).values())

    claiming = Rival(claim_and_look)
    interrupt_before(monkeypatch, skipping, "skip_planned", claiming)
    skip_action(action(plan, "a").uuid, "alice")
    assert claiming.result() == {"SKIPPED"}


def test_planned_action_is_not_restored_while_its_action_is_being_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_to_derive(A, X_THEN_Y)
    x = action(plan, "x").uuid
    skip_action(x, "alice")
    other = Rival(lambda: refused(lambda: restore_action(x)))
    interrupt_before(monkeypatch, skipping, "skip_planned", other)
    skip_action(action(plan, "a").uuid, "bob")
    assert other.result()
    assert set(states(plan).values()) == {"SKIPPED"}
