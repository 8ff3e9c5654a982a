"""Skipping and restoring a set of actions in one request: all or none."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def plan() -> ActionPlan:
    return make_plan({"a": [], "b": [], "c": ["a"]})


def uuids(plan: ActionPlan, *names: str) -> list[str]:
    return [str(action(plan, name).uuid) for name in names]


def states(plan: ActionPlan) -> list[str]:
    return list(plan.actions.order_by("pk").values_list("state", flat=True))


def send(api: Caller, plan: ActionPlan, verb: str, *names: str, **more: Any) -> Any:
    return api.post(f"/action_plans/{plan.uuid}/{verb}", {"actions": uuids(plan, *names), **more})


def test_set_of_actions_is_skipped_with_one_reason(api: Caller, plan: ActionPlan) -> None:
    answer = send(api, plan, "skip", "a", "c", reason="closing")
    assert (answer.status_code, states(plan)) == (200, ["SKIPPED", "PENDING", "SKIPPED"])
    assert {row["status_message"] for row in answer.json()["actions"]} == {"Action skipped by user. Reason: closing"}


def test_set_of_actions_is_restored(api: Caller, plan: ActionPlan) -> None:
    send(api, plan, "skip", "a", "b", "c")
    answer = send(api, plan, "restore", "a", "c")
    assert (answer.status_code, states(plan)) == (200, ["PENDING", "SKIPPED", "PENDING"])
    assert [row["state"] for row in answer.json()["actions"]] == ["PENDING", "PENDING"]


@pytest.mark.parametrize("verb", ["skip", "restore"])
def test_set_with_one_refused_action_is_left_unchanged(api: Caller, plan: ActionPlan, verb: str) -> None:
    send(api, plan, "skip", "b")
    before = states(plan)
    answer = send(api, plan, verb, "a", "b", "c")
    assert (answer.status_code, states(plan)) == (409, before)
    assert fault(answer).startswith(f"Action {action(plan, 'b' if verb == 'skip' else 'a').uuid}: ")


def test_action_of_another_plan_returns_404(api: Caller, plan: ActionPlan) -> None:
    stranger = uuids(make_plan({"a": []}), "a")
    answer = api.post(f"/action_plans/{plan.uuid}/skip", {"actions": [*uuids(plan, "a"), *stranger]})
    assert (answer.status_code, fault(answer)) == (404, f"Action {stranger[0]} could not be found")
    assert states(plan) == ["PENDING"] * 3


def test_repeated_action_is_skipped_once(api: Caller, plan: ActionPlan) -> None:
    assert len(send(api, plan, "skip", "a", "a").json()["actions"]) == 1


@pytest.mark.parametrize("verb", ["skip", "restore"])
@pytest.mark.parametrize("number", [2, 20])
def test_query_count_does_not_depend_on_the_number_of_actions(
    api: Caller, django_assert_num_queries: Any, verb: str, number: int
) -> None:
    names = [f"action {order}" for order in range(number)]
    plan = make_plan({name: [] for name in names})
    chosen = uuids(plan, *names)
    if verb == "restore":
        send(api, plan, "skip", *names)
    api.get("/action_plans")  # Permissions are read once.
    # The plan, the actions with the plan locked, the update, the history entries, the actions again, a savepoint.
    with django_assert_num_queries(8):
        assert api.post(f"/action_plans/{plan.uuid}/{verb}", {"actions": chosen}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"actions": []},
        {"actions": "all"},
        {"actions": ["a"]},
        {"actions": [str(uuid4())] * 1001},
        {"actions": [str(uuid4())], "why": "?"},
        {"actions": [str(uuid4())], "reason": 3.5e4 * 10},
        [],
    ],
)
def test_invalid_body_is_refused(api: Caller, plan: ActionPlan, body: Any) -> None:
    answer = api.post(f"/action_plans/{plan.uuid}/skip", body)
    assert answer.status_code in {400, 404}
    assert states(plan) == ["PENDING"] * 3


def test_too_long_reason_changes_nothing(api: Caller, plan: ActionPlan) -> None:
    answer = send(api, plan, "skip", "a", "b", reason="x" * 256)
    assert (answer.status_code, states(plan)) == (400, ["PENDING"] * 3)


@pytest.mark.parametrize("verb", ["skip", "restore"])
def test_sets_are_not_acceptable_before_microversion_1_12(cloud_admin: User, plan: ActionPlan, verb: str) -> None:
    assert send(Caller(cloud_admin, "1.11"), plan, verb, "a").status_code == 406


@pytest.mark.parametrize("verb", ["skip", "restore"])
def test_readers_cannot_change_sets(reader: User, plan: ActionPlan, verb: str) -> None:
    assert send(Caller(reader, "1.12"), plan, verb, "a").status_code == 403


@pytest.mark.parametrize("verb", ["skip", "restore"])
@pytest.mark.parametrize("stranger", [1, None, True, ["x"], {}])
def test_uuid_that_is_not_a_text_is_refused(api: Caller, plan: ActionPlan, verb: str, stranger: Any) -> None:
    answer = api.post(f"/action_plans/{plan.uuid}/{verb}", {"actions": [stranger]})
    assert answer.status_code == 400
    assert "actions.0" in fault(answer)
