"""Races of an action that derives others with the cancellation or adoption of its plan, and of two ends."""

from collections.abc import Callable
from typing import Any

import pytest

from actions.engine import execution, storage
from actions.operations.skipping import skip_action
from actions.types.base import Answer, Outcome
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.builders import action, make_plan
from tests.interleaving import Rival, interrupt_after
from tests.plans.deriving import behave, deriving
from tests.plans.inline import run_waiting
from tests.races import Race, rounds
from watcher_site.models import Service
from watcher_site.refusals import Conflict

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = rounds(50)


@pytest.fixture
def appliers(settings: Any) -> list[Service]:
    # These appliers send no heartbeats, and on a slow machine a test takes longer than a lease.
    settings.SERVICE_DOWN_TIME = 3600
    return [Service.register(Service.APPLIER, host) for host in ("one", "two")]


def running(applier: Service) -> ActionPlan:
    return make_plan({"a": [], "b": ["a"]}, state="ONGOING", applier=applier)


def derive(plan: ActionPlan, applier: Service) -> Callable[[], bool]:
    found, lease = action(plan, "a"), PlanLease.of(plan, applier)
    return lambda: execution.execute(found, lease) and reload(plan).actions.filter(derived_from=found).exists()


def run_to_end(plan: ActionPlan) -> ActionPlan:
    ActionPlan.objects.filter(pk=plan.pk).update(applier=None)
    run_waiting()
    return reload(plan)


def test_deriving_concurrent_with_a_cancel_leaves_no_pending_derived_action(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}))
    with Race() as race:
        for _ in range(ROUNDS):
            plan = running(appliers[0])
            theirs = reload(plan)
            derived, cancelled = race.run(derive(plan, appliers[0]), lambda theirs=theirs: theirs.abandon("alice"))
            assert cancelled
            assert plan.actions.count() == (4 if derived else 2)
            assert run_to_end(plan).state == "CANCELLED"
            assert set(states(plan).values()) == {"CANCELLED"}


def test_deriving_concurrent_with_an_adoption_creates_each_action_once(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    behave(monkeypatch, a=deriving({"x": [], "y": ["x"]}))
    with Race() as race:
        for _ in range(ROUNDS):
            plan = running(appliers[0])
            seen: list[int] = []

            def adopt(plan: ActionPlan = plan, seen: list[int] = seen) -> None:
                ActionPlan.objects.filter(pk=plan.pk).update(applier=appliers[1])
                seen.append(plan.actions.count())

            derived, _ = race.run(derive(plan, appliers[0]), adopt)
            assert seen == [4 if derived else 2]
            assert run_to_end(plan).state == "SUCCEEDED"
            assert sorted(states(plan)) == ["a", "b", "x", "y"]
            assert plan.actions.count() == 4


def test_first_of_two_concurrent_ends_ends_the_common_children(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    """The second end starts after the first one wrote its rows and before it commits."""
    behave(monkeypatch, x=lambda _: Outcome(Answer.ERROR), y=lambda _: Outcome(Answer.CANCEL))
    graph = {"x": [], "y": [], "z": ["x", "y"], "last": ["z"]}
    plan = make_plan(graph, state="ONGOING", applier=appliers[0], on_failure="stop")
    lease, second = PlanLease.of(plan, appliers[0]), action(plan, "y")
    rival = Rival(lambda: execution.execute(second, lease))
    interrupt_after(monkeypatch, storage, "end_dependents", rival)
    assert execution.execute(action(plan, "x"), lease)
    assert rival.result()
    assert states(plan) == {"x": "FAILED", "y": "CANCELLED", "z": "FAILED", "last": "FAILED"}
    assert str(action(plan, "x").uuid) in (action(plan, "last").status_message or "")


def test_derived_action_cannot_be_skipped(monkeypatch: pytest.MonkeyPatch, appliers: list[Service]) -> None:
    """It exists only after its plan started, when no action can be skipped."""
    behave(monkeypatch, a=deriving({"x": []}))
    plan = running(appliers[0])
    assert derive(plan, appliers[0])()
    with pytest.raises(Conflict, match="State update not allowed for actionplan state: ONGOING"):
        skip_action(action(plan, "x").uuid, "alice")
