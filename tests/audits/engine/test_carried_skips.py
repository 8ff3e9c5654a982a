"""Skips by users that carry over to the plan of the next run of a continuous audit."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.exclusions.records import delete_exclusion
from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.operations.skipping import restore_action, skip_action, skip_actions
from audits.engine.engine import DecisionEngine
from audits.models import Audit
from audits.operations.creation import create_audit
from plans.models import ActionPlan
from plans.planning.proposals import carry_skips, propose
from tests.actions.exclusions.builders import make_exclusion
from tests.api import Caller
from tests.audits.clock import Clock
from tests.audits.engine.test_continuous_audits import run
from tests.builders import make_node
from tests.plans.applier.test_commits import counted
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db
SKIPPED = "Action skipped by user. Skipped by alice in an earlier plan"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def engine(clock: Clock) -> DecisionEngine:
    make_node("compute1")
    return DecisionEngine()


def make_audit(**fields: Any) -> Audit:
    return create_audit(audit_type="CONTINUOUS", goal="dummy", strategy="dummy", interval="60", **fields)


def run_next(engine: DecisionEngine, clock: Clock) -> ActionPlan:
    """Run an audit again, and return its newest plan."""
    clock.advance(61)
    assert run(engine) == 1
    newest: ActionPlan = ActionPlan.objects.order_by("pk").last()
    return newest


def action(plan: ActionPlan, action_type: str = "sleep") -> Action:
    found: Action = plan.actions.filter(action_type=action_type).order_by("pk").first()
    return found


def test_skip_by_a_user_carries_over_to_the_equal_action_of_the_next_run(engine: DecisionEngine, clock: Clock) -> None:
    make_audit()
    first = run_next(engine, clock)
    skip_action(action(first).uuid, "alice", "not tonight")
    second = run_next(engine, clock)
    carried = action(second)
    assert (carried.state, carried.skipped_by, carried.reason) == ("SKIPPED", "alice", "not tonight")
    assert carried.status_message == f"{SKIPPED}: not tonight"
    assert set(second.actions.exclude(pk=carried.pk).values_list("state", flat=True)) == {"PENDING"}


def test_skip_carries_over_to_every_later_run_with_the_same_message(engine: DecisionEngine, clock: Clock) -> None:
    make_audit()
    skip_action(action(run_next(engine, clock)).uuid, "alice")
    run_next(engine, clock)
    assert action(run_next(engine, clock)).status_message == f"{SKIPPED}."


def test_skip_of_a_restored_action_does_not_carry_over(engine: DecisionEngine, clock: Clock) -> None:
    make_audit()
    skip_action(action(run_next(engine, clock)).uuid, "alice")
    second = run_next(engine, clock)
    restore_action(action(second).uuid)
    assert action(run_next(engine, clock)).state == "PENDING"


def test_skip_does_not_carry_over_to_an_action_with_other_parameters(engine: DecisionEngine, clock: Clock) -> None:
    make_audit()
    first = run_next(engine, clock)
    skip_action(action(first).uuid, "alice")
    Action.objects.filter(pk=action(first).pk).update(input_parameters={"duration": 0.25})
    assert action(run_next(engine, clock)).state == "PENDING"


def test_skip_by_an_exclusion_does_not_carry_over(engine: DecisionEngine, clock: Clock) -> None:
    make_audit()
    rule = make_exclusion(action_types=["sleep"])
    assert action(run_next(engine, clock)).state == "SKIPPED"
    delete_exclusion(rule)
    assert action(run_next(engine, clock)).state == "PENDING"


def test_skip_does_not_carry_over_to_the_plan_of_another_audit(engine: DecisionEngine, clock: Clock) -> None:
    make_audit()
    skip_action(action(run_next(engine, clock)).uuid, "alice")
    Audit.objects.update(state="CANCELLED")
    make_audit(name="another")
    assert action(run_next(engine, clock)).state == "PENDING"


def test_auto_triggered_plan_does_not_run_an_action_with_a_carried_skip(engine: DecisionEngine, clock: Clock) -> None:
    audit = make_audit()
    skip_action(action(run_next(engine, clock)).uuid, "alice")
    Audit.objects.filter(pk=audit.pk).update(auto_trigger=True)
    second = run_next(engine, clock)
    run_waiting()
    assert (action(second).state, action(second, "nop").state) == ("SKIPPED", "SUCCEEDED")


def test_api_and_console_show_a_carried_skip_and_restore_the_action(
    engine: DecisionEngine, clock: Clock, cloud_admin: User, client: Client
) -> None:
    make_audit()
    skip_action(action(run_next(engine, clock)).uuid, "alice", "not tonight")
    carried = action(run_next(engine, clock))
    api = Caller(cloud_admin, "1.13")
    assert api.get(f"/actions/{carried.uuid}").json()["status_message"] == f"{SKIPPED}: not tonight"
    client.force_login(cloud_admin)
    page = client.get(reverse("plans:detail", args=[carried.action_plan.uuid])).content.decode()
    assert f"{SKIPPED}: not tonight" in page
    step = [{"op": "replace", "path": "/state", "value": "PENDING"}]
    assert api.patch(f"/actions/{carried.uuid}", step).status_code == 200
    assert action(carried.action_plan).state == "PENDING"


def test_statement_count_of_carry_skips_does_not_depend_on_the_number_of_skips(
    engine: DecisionEngine, clock: Clock
) -> None:
    costs = []
    for number in (2, 100):
        proposed = [{"message": str(one)} for one in range(number)]
        first, second = (propose([ProposedAction("nop", inputs) for inputs in proposed]) for _ in range(2))
        skip_actions(first, list(first.actions.values_list("uuid", flat=True)), "alice")
        with counted() as statements:
            assert carry_skips(second, [first.pk]) == number
        costs.append(len(statements))
    assert costs[0] == costs[1]
