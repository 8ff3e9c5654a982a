"""Changes of an action's parents (``depends_on``) by PATCH before its plan starts."""

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
def test_depends_on_is_replaced_by_a_list(newest: Caller, plan: ActionPlan, state: str) -> None:
    ActionPlan.objects.filter(pk=plan.pk).update(state=state)
    answer = newest.patch(f"/actions/{uuid(plan, 'b')}", [step("replace", value=[uuid(plan, "c")])])
    assert (answer.status_code, answer.json()["depends_on"]) == (200, [uuid(plan, "c")])
    assert parents(plan, "b") == {"c"}


def test_one_dependency_is_added(newest: Caller, plan: ActionPlan) -> None:
    newest.patch(f"/actions/{uuid(plan, 'b')}", [step("add", "/depends_on/-", value=uuid(plan, "c"))])
    assert parents(plan, "b") == {"a", "c"}


@pytest.mark.parametrize("path", ["/depends_on", "/depends_on/0"])
def test_dependencies_are_removed_all_or_by_index(newest: Caller, plan: ActionPlan, path: str) -> None:
    assert newest.patch(f"/actions/{uuid(plan, 'b')}", [step("remove", path)]).status_code == 200
    assert parents(plan, "b") == set()


def test_repeated_dependency_is_stored_once(newest: Caller, plan: ActionPlan) -> None:
    newest.patch(f"/actions/{uuid(plan, 'b')}", [step("replace", value=[uuid(plan, "c")] * 2)])
    assert parents(plan, "b") == {"c"}


def test_the_plan_is_executed_in_the_new_order(newest: Caller, plan: ActionPlan) -> None:
    newest.patch(f"/actions/{uuid(plan, 'a')}", [step("replace", value=[uuid(plan, "c")])])
    newest.post(f"/action_plans/{plan.uuid}/start")
    run_waiting()
    order = plan.actions.order_by("events__pk").filter(events__event="execute")
    assert list(order.values_list("input_parameters__message", flat=True)) == ["c", "a", "b"]


def test_one_patch_removes_dependencies_and_skips_the_action(newest: Caller, plan: ActionPlan) -> None:
    patch = [step("remove"), step("replace", "/state", value="SKIPPED")]
    answer = newest.patch(f"/actions/{uuid(plan, 'b')}", patch).json()
    assert (answer["state"], answer["depends_on"]) == ("SKIPPED", [])


def test_failed_patch_changes_nothing(newest: Caller, plan: ActionPlan) -> None:
    patch = [step("remove"), step("replace", "/state", value="SUCCEEDED")]
    assert newest.patch(f"/actions/{uuid(plan, 'b')}", patch).status_code == 409
    assert parents(plan, "b") == {"a"}


@pytest.mark.parametrize("state", ["ONGOING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_dependencies_cannot_change_after_the_plan_started(newest: Caller, plan: ActionPlan, state: str) -> None:
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


def test_dependency_on_an_action_of_another_plan_is_refused(newest: Caller, plan: ActionPlan) -> None:
    stranger = uuid(make_plan({"other": []}), "other")
    answer = newest.patch(f"/actions/{uuid(plan, 'a')}", [step("replace", value=[stranger])])
    assert (answer.status_code, fault(answer)) == (400, f"depends_on: {stranger} is not an action of the plan.")


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
def test_invalid_step_is_refused(newest: Caller, plan: ActionPlan, bad: dict[str, Any]) -> None:
    assert newest.patch(f"/actions/{uuid(plan, 'b')}", [bad]).status_code == 400
    assert parents(plan, "b") == {"a"}


def test_dependencies_cannot_be_changed_before_1_12(cloud_admin: User, plan: ActionPlan) -> None:
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
def test_each_part_of_a_patch_requires_its_permission(
    reader: User, plan: ActionPlan, right: str, patch: list[dict[str, Any]], status: int
) -> None:
    reader.user_permissions.add(Permission.objects.get(codename=right))
    caller = Caller(User.objects.get(pk=reader.pk), "1.12")
    assert caller.patch(f"/actions/{uuid(plan, 'b')}", patch).status_code == status


def test_change_of_dependencies_sets_updated_at(newest: Caller, plan: ActionPlan) -> None:
    newest.patch(f"/actions/{uuid(plan, 'b')}", [step("remove")])
    assert Action.objects.filter(updated_at=None).count() == 2
    assert ActionPlan.objects.get().updated_at


class Incomparable(dict[str, Any]):
    """A step that refuses comparisons: comparing each step with the others would be quadratic in the request."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared")


def test_steps_of_a_patch_are_split_without_comparing_them() -> None:
    steps = [Incomparable(step(op, path, value=0)) for op, path in (("add", "/depends_on/-"), ("replace", "/state"))]
    edges, others = split(steps)
    assert ([one["path"] for one in edges], [one["path"] for one in others]) == (["/depends_on/-"], ["/state"])


@pytest.fixture
def deriving_plan() -> ActionPlan:
    """Return a plan in which a derives x and y (y after x), and b is independent."""
    return plan_to_derive({"a": [], "b": []}, {"a": {"x": [], "y": ["x"]}})


def test_planned_derived_action_may_depend_on_its_siblings(newest: Caller, deriving_plan: ActionPlan) -> None:
    assert newest.patch(f"/actions/{uuid(deriving_plan, 'y')}", [step("remove", "/depends_on/1")]).status_code == 200
    newest.patch(
        f"/actions/{uuid(deriving_plan, 'x')}", [step("add", "/depends_on/-", value=uuid(deriving_plan, "y"))]
    )
    assert (parents(deriving_plan, "y"), parents(deriving_plan, "x")) == ({"a"}, {"a", "y"})


def test_dependency_of_a_planned_derived_action_on_its_origin_cannot_be_removed(
    newest: Caller, deriving_plan: ActionPlan
) -> None:
    answer = newest.patch(f"/actions/{uuid(deriving_plan, 'x')}", [step("replace", value=[])])
    x, a = uuid(deriving_plan, "x"), uuid(deriving_plan, "a")
    assert (answer.status_code, fault(answer)) == (
        400,
        f"depends_on: action {x} is derived from {a}, and always waits for it.",
    )


@pytest.mark.parametrize(("child", "parent"), [("x", "b"), ("b", "x"), ("a", "x")])
def test_dependency_between_a_planned_derived_action_and_another_action_is_refused(
    newest: Caller, deriving_plan: ActionPlan, child: str, parent: str
) -> None:
    before = parents(deriving_plan, child)
    edge = step("add", "/depends_on/-", value=uuid(deriving_plan, parent))
    answer = newest.patch(f"/actions/{uuid(deriving_plan, child)}", [edge])
    assert (answer.status_code, parents(deriving_plan, child)) == (400, before)
    assert f"must not wait for {uuid(deriving_plan, parent)}, derived from" in fault(answer)
