"""Audits of the goal ``stack_health`` from the mark to the replacement."""

from typing import Any

import pytest

from audits.engine.engine import DecisionEngine
from audits.operations.creation import create_audit
from cluster.models import Stack
from cluster.snapshot.health import load_health
from plans.models import ActionPlan
from plans.operations.marks import mark
from tests.actions.types.stacks.builders import create, group, names, part, reload, server, statuses, within
from tests.builders import make_flavor, make_node
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Stack:
    make_node()
    make_flavor()
    return create("shop", db=server(), web={**group(2), "depends_on": ["db"]}, cache=within(node=server()))


def decide(**fields: Any) -> ActionPlan:
    create_audit(audit_type="ONESHOT", goal="stack_health", strategy="replace_unhealthy", **fields)
    engine = DecisionEngine()
    while engine.run_next_audit():
        pass
    return ActionPlan.objects.latest("pk")


def planned(plan: ActionPlan) -> list[tuple[str, str]]:
    actions = plan.actions.filter(derived_from=None).order_by("pk")
    return [(action.action_type, action.input_parameters["resource_name"]) for action in actions]


def test_plan_without_marked_objects_is_empty_and_succeeds(shop: Stack) -> None:
    plan = decide()
    assert (plan.state, planned(plan)) == ("SUCCEEDED", [])


def test_started_plan_replaces_marked_resources_in_order(shop: Stack) -> None:
    db, member = part(shop, "db"), part(shop, "web", names_within(shop, "web")[0])
    for resource in (db, member):
        mark(resource, True, "it does not answer")
    plan = decide()
    assert (plan.state, planned(plan)) == (
        "RECOMMENDED",
        [("replace_resource", "db"), ("replace_resource", member.name)],
    )
    first, second = plan.actions.order_by("pk")
    assert list(second.parents.all()) == [first]
    plan.launch()
    run_waiting()
    assert reload(plan).state == "SUCCEEDED"
    assert (reload(db).generation, reload(member).generation) == (db.generation + 1, member.generation + 1)
    assert statuses(shop) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def test_replacement_is_skipped_if_the_mark_was_removed_before_the_start(shop: Stack) -> None:
    db = part(shop, "db")
    mark(db, True)
    plan = decide()
    mark(reload(db), False)
    plan.launch()
    run_waiting()
    [action] = plan.actions.all()
    assert (action.state, "no longer CHECK_FAILED" in str(action.status_message)) == ("SKIPPED", True)


def test_marked_resource_inside_a_marked_resource_is_not_planned_separately(shop: Stack) -> None:
    mark(part(shop, "cache", "node"), True)
    mark(part(shop, "cache"), True)
    assert planned(decide()) == [("replace_resource", "cache")]


def test_marked_stack_is_updated_and_its_resources_are_replaced(shop: Stack) -> None:
    before = part(shop, "db").physical_id
    mark(shop, True)
    plan = decide(auto_trigger=True)
    assert planned(plan) == [("update_stack", "shop")]
    run_waiting()
    assert part(reload(shop), "db").physical_id != before
    assert statuses(shop) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def test_query_count_of_load_health_does_not_depend_on_the_number_of_marks(
    shop: Stack, django_assert_num_queries: Any
) -> None:
    for name in ("db", "web", "cache"):
        mark(part(shop, name), True)
    with django_assert_num_queries(4):
        [stack] = load_health().stacks
    assert {one.name for one in stack.marked} == {"db", "web", "cache"}


def names_within(stack: Stack, name: str) -> list[str]:
    return names(Stack.objects.get(uuid=part(stack, name).physical_id))
