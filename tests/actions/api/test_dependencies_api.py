"""An action's parents are changed by a PATCH, until its plan begins."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User

from actions.api.actions import split
from actions.models import Action
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import action, make_plan
from tests.plans.deriving import plan_to_derive
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db
GRAPH: dict[str, list[str]] = {"a": [], "b": ["a"], "c": []}


@pytest.fixture
def newest(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def plan() -> ActionPlan:
    return make_plan(GRAPH)


def uuid(plan: ActionPlan, name: str) -> str:
    return str(action(plan, name).uuid)


def step(op: str, path: str = "/depends_on", **value: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **value}


def parents(plan: ActionPlan, name: str) -> set[str]:
    return set(action(plan, name).parents.values_list("input_parameters__message", flat=True))


@pytest.mark.parametrize("state", ["RECOMMENDED", "PENDING"])
def test_it_is_replaced_by_a_list(newest: Caller, plan: ActionPlan, state: str) -> None:
    ActionPlan.objects.filter(pk=plan.pk).update(state=state)
    answer = newest.patch(f"/actions/{uuid(plan, 'b')}", [step("replace", value=[uuid(plan, "c")])])
    assert (answer.status_code, answer.json()["depends_on"]) == (200, [uuid(plan, "c")])
    assert parents(plan, "b") == {"c"}


def test_one_is_added(newest: Caller, plan: ActionPlan) -> None:
    newest.patch(f"/actions/{uuid(plan, 'b')}", [step("add", "/depends_on/-", value=uuid(plan, "c"))])
    assert parents(plan, "b") == {"a", "c"}


@pytest.mark.parametrize("path", ["/depends_on", "/depends_on/0"])
def test_all_or_one_are_removed(newest: Caller, plan: ActionPlan, path: str) -> None:
    assert newest.patch(f"/actions/{uuid(plan, 'b')}", [step("remove", path)]).status_code == 200
    assert parents(plan, "b") == set()


def test_the_same_twice_is_there_once(newest: Caller, plan: ActionPlan) -> None:
    newest.patch(f"/actions/{uuid(plan, 'b')}", [step("replace", value=[uuid(plan, "c")] * 2)])
    assert parents(plan, "b") == {"c"}


def test_the_plan_is_executed_in_the_new_order(newest: Caller, plan: ActionPlan) -> None:
    newest.patch(f"/actions/{uuid(plan, 'a')}", [step("replace", value=[uuid(plan, "c")])])
    newest.post(f"/action_plans/{plan.uuid}/start")
    run_waiting()
    order = plan.actions.order_by("events__pk").filter(events__event="execute")
    assert list(order.values_list("input_parameters__message", flat=True)) == ["c", "a", "b"]


def test_an_action_is_skipped_and_freed_of_what_it_depends_on_in_one_patch(newest: Caller, plan: ActionPlan) -> None:
    patch = [step("remove"), step("replace", "/state", value="SKIPPED")]
    answer = newest.patch(f"/actions/{uuid(plan, 'b')}", patch).json()
    assert (answer["state"], answer["depends_on"]) == ("SKIPPED", [])


def test_of_a_patch_that_fails_nothing_is_done(newest: Caller, plan: ActionPlan) -> None:
    patch = [step("remove"), step("replace", "/state", value="SUCCEEDED")]
    assert newest.patch(f"/actions/{uuid(plan, 'b')}", patch).status_code == 409
    assert parents(plan, "b") == {"a"}


@pytest.mark.parametrize("state", ["ONGOING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_nothing_is_changed_once_the_plan_has_begun(newest: Caller, plan: ActionPlan, state: str) -> None:
    ActionPlan.objects.filter(pk=plan.pk).update(state=state)
    answer = newest.patch(f"/actions/{uuid(plan, 'b')}", [step("remove")])
    assert (answer.status_code, fault(answer)) == (409, f"depends_on update not allowed for actionplan state: {state}")
    assert parents(plan, "b") == {"a"}


def test_a_cycle_is_refused_and_named(newest: Caller, plan: ActionPlan) -> None:
    answer = newest.patch(f"/actions/{uuid(plan, 'a')}", [step("replace", value=[uuid(plan, "b")])])
    assert answer.status_code == 400
    assert fault(answer).startswith("depends_on: these actions wait for each other: ")
    assert uuid(plan, "a") in fault(answer)
    assert uuid(plan, "b") in fault(answer)
    assert parents(plan, "a") == set()


def test_an_action_that_depends_on_itself_is_refused(newest: Caller, plan: ActionPlan) -> None:
    answer = newest.patch(f"/actions/{uuid(plan, 'a')}", [step("replace", value=[uuid(plan, "a")])])
    assert (answer.status_code, fault(answer)) == (400, f"depends_on: action {uuid(plan, 'a')} waits for itself.")


def test_an_action_of_another_plan_is_none_of_this_one(newest: Caller, plan: ActionPlan) -> None:
    stranger = uuid(make_plan({"other": []}), "other")
    answer = newest.patch(f"/actions/{uuid(plan, 'a')}", [step("replace", value=[stranger])])
    assert (answer.status_code, fault(answer)) == (400, f"depends_on: {stranger} is no action of the plan.")


@pytest.mark.parametrize(
    "bad",
    [
        step("replace", value="x"),
        step("replace", value=None),
        step("replace", value={}),
        step("replace", value=["x"]),
        step("replace", value=[None]),
        step("replace", value=[str(uuid4())]),
        step("add", "/depends_on/-", value=3),
        step("add", "/depends_on/7", value=str(uuid4())),
        step("remove", "/depends_on/-"),
        step("remove", "/depends_on/1"),
        step("remove", "/depends_on/00000000000000000000000000000000000000001"),
        step("replace", "/depends_on/0/x", value="x"),
        step("add"),
        {"path": "/depends_on"},
        step("test", value=[]),
    ],
)
def test_what_makes_no_sense_is_refused(newest: Caller, plan: ActionPlan, bad: dict[str, Any]) -> None:
    assert newest.patch(f"/actions/{uuid(plan, 'b')}", [bad]).status_code == 400
    assert parents(plan, "b") == {"a"}


def test_before_1_12_it_is_not_to_be_changed(cloud_admin: User, plan: ActionPlan) -> None:
    answer = Caller(cloud_admin, "1.11").patch(f"/actions/{uuid(plan, 'b')}", [step("remove")])
    assert (answer.status_code, parents(plan, "b")) == (400, {"a"})


@pytest.mark.parametrize(
    ("right", "patch", "status"),
    [
        ("skip_action", [step("remove")], 403),
        ("change_action", [step("remove")], 200),
        ("change_action", [step("replace", "/state", value="SKIPPED")], 403),
        ("change_action", [step("remove"), step("replace", "/state", value="SKIPPED")], 403),
        ("skip_action", [step("replace", "/state", value="SKIPPED")], 200),
    ],
)
def test_each_part_of_a_patch_needs_its_right(
    reader: User, plan: ActionPlan, right: str, patch: list[dict[str, Any]], status: int
) -> None:
    reader.user_permissions.add(Permission.objects.get(codename=right))
    caller = Caller(User.objects.get(pk=reader.pk), "1.12")
    assert caller.patch(f"/actions/{uuid(plan, 'b')}", patch).status_code == status


def test_the_change_shows_in_its_time(newest: Caller, plan: ActionPlan) -> None:
    newest.patch(f"/actions/{uuid(plan, 'b')}", [step("remove")])
    assert Action.objects.filter(updated_at=None).count() == 2
    assert ActionPlan.objects.get().updated_at


class Incomparable(dict[str, Any]):
    """A step that is not held against each of the others: these are as many as somebody likes to send."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")


def test_the_steps_of_a_patch_are_sorted_out_in_one_pass() -> None:
    steps = [Incomparable(step(op, path, value=0)) for op, path in (("add", "/depends_on/-"), ("replace", "/state"))]
    edges, others = split(steps)
    assert ([one["path"] for one in edges], [one["path"] for one in others]) == (["/depends_on/-"], ["/state"])


@pytest.fixture
def deriving() -> ActionPlan:
    """a is to derive x and y, which waits for x; b waits for nothing."""
    return plan_to_derive({"a": [], "b": []}, {"a": {"x": [], "y": ["x"]}})


def test_what_is_to_be_derived_may_wait_for_others_that_are_with_it(newest: Caller, deriving: ActionPlan) -> None:
    assert newest.patch(f"/actions/{uuid(deriving, 'y')}", [step("remove", "/depends_on/1")]).status_code == 200
    newest.patch(f"/actions/{uuid(deriving, 'x')}", [step("add", "/depends_on/-", value=uuid(deriving, "y"))])
    assert (parents(deriving, "y"), parents(deriving, "x")) == ({"a"}, {"a", "y"})


def test_it_always_waits_for_the_action_that_is_to_derive_it(newest: Caller, deriving: ActionPlan) -> None:
    answer = newest.patch(f"/actions/{uuid(deriving, 'x')}", [step("replace", value=[])])
    x, a = uuid(deriving, "x"), uuid(deriving, "a")
    assert (answer.status_code, fault(answer)) == (
        400,
        f"depends_on: action {x} is derived from {a}, and always waits for it.",
    )


@pytest.mark.parametrize(("child", "parent"), [("x", "b"), ("b", "x"), ("a", "x")])
def test_it_waits_for_no_others_nor_others_for_it(
    newest: Caller, deriving: ActionPlan, child: str, parent: str
) -> None:
    before = parents(deriving, child)
    edge = step("add", "/depends_on/-", value=uuid(deriving, parent))
    answer = newest.patch(f"/actions/{uuid(deriving, child)}", [edge])
    assert (answer.status_code, parents(deriving, child)) == (400, before)
    assert f"must not wait for {uuid(deriving, parent)}, derived from" in fault(answer)
