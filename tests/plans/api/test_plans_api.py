"""Action plans through the API."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from plans.models import EfficacyIndicator
from tests.api import Caller, fault
from tests.builders import make_audit, make_plan, make_strategy

pytestmark = pytest.mark.django_db


def to(state: object) -> list[dict[str, object]]:
    return [{"op": "replace", "path": "/state", "value": state}]


def test_recommended_plan_is_started(api: Caller) -> None:
    answer = api.post(f"/action_plans/{make_plan().uuid}/start")
    assert (answer.status_code, answer.json()["state"]) == (200, "PENDING")


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "SUCCEEDED", "CANCELLED", "SUPERSEDED"])
def test_start_is_refused_in_other_states_than_recommended(api: Caller, state: str) -> None:
    answer = api.post(f"/action_plans/{make_plan(state=state).uuid}/start", {})
    assert answer.status_code == 400
    assert fault(answer) == f"Couldn't start when state is '{state}'."


@pytest.mark.parametrize(
    ("before", "requested"),
    [("RECOMMENDED", "PENDING"), ("RECOMMENDED", "CANCELLED"), ("PENDING", "CANCELLED"), ("ONGOING", "CANCELLING")],
)
def test_allowed_state_transition_is_patched(api: Caller, before: str, requested: str) -> None:
    answer = api.patch(f"/action_plans/{make_plan(state=before).uuid}", to(requested))
    assert (answer.status_code, answer.json()["state"]) == (200, requested)


@pytest.mark.parametrize(
    ("before", "requested"),
    [("RECOMMENDED", "ONGOING"), ("PENDING", "PENDING"), ("ONGOING", "CANCELLED"), ("SUCCEEDED", "PENDING")],
)
def test_other_state_transitions_are_refused(api: Caller, before: str, requested: str) -> None:
    answer = api.patch(f"/action_plans/{make_plan(state=before).uuid}", to(requested))
    assert answer.status_code == 400
    assert f"State transition not allowed: ({before} -> {requested})" in fault(answer)


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ([], "State transition not allowed"),
        (to("FOO"), "Invalid state: FOO"),
        (to(["PENDING"]), "Invalid state"),
        (to({}), "Invalid state"),
        ([*to("PENDING"), {"op": "replace", "path": "/hostname", "value": "x"}], "not allowed"),
        ([{"op": "replace", "path": "/status_message", "value": "x"}], "internal"),
        ([{"op": "remove", "path": "/state"}], "mandatory"),
        ({"state": "PENDING"}, "list"),
    ],
)
def test_invalid_patch_is_refused_and_changes_nothing(api: Caller, patch: Any, words: str) -> None:
    plan = make_plan()
    answer = api.patch(f"/action_plans/{plan.uuid}", patch)
    assert (answer.status_code, words in fault(answer)) == (400, True), fault(answer)
    assert api.get(f"/action_plans/{plan.uuid}").json()["state"] == "RECOMMENDED"


def test_cancelling_a_plan_keeps_skipped_actions_skipped(api: Caller) -> None:
    plan = make_plan({"a": [], "b": []})
    skipped = plan.actions.get(input_parameters__message="a")
    skipped.skip("alice")
    skipped.save_state()
    api.patch(f"/action_plans/{plan.uuid}", to("CANCELLED"))
    assert sorted(plan.actions.values_list("state", flat=True)) == ["CANCELLED", "SKIPPED"]


def test_deleting_a_plan_deletes_its_actions(api: Caller) -> None:
    plan = make_plan({"a": []})
    assert api.delete(f"/action_plans/{plan.uuid}").status_code == 204
    assert api.get(f"/action_plans/{plan.uuid}").status_code == 404
    assert api.get("/actions").json()["actions"] == []


@pytest.mark.parametrize("state", ["PENDING", "ONGOING", "CANCELLING"])
def test_started_plan_cannot_be_deleted(api: Caller, state: str) -> None:
    answer = api.delete(f"/action_plans/{make_plan(state=state).uuid}")
    assert answer.status_code == 400
    assert fault(answer) == f"Couldn't delete when state is '{state}'."


def test_efficacy_is_shown_in_both_plan_lists(api: Caller) -> None:
    plan = make_plan(strategy=make_strategy())
    EfficacyIndicator.objects.create(action_plan=plan, name="released", description="nodes", unit=None, value=4)
    expected = [{"name": "released", "description": "nodes", "unit": None, "value": 4.0}]
    for path in ("/action_plans", "/action_plans/detail"):
        shown = api.get(path).json()["action_plans"][0]
        assert (shown["efficacy_indicators"], shown["global_efficacy"]) == (expected, [])
        assert shown["strategy_name"] == "dummy"


@pytest.mark.parametrize("count", [3, 60])
def test_plan_list_query_count_does_not_depend_on_the_number_of_plans(
    api: Caller, django_assert_num_queries: Any, count: int
) -> None:
    strategy, audit = make_strategy(), make_audit()
    for _ in range(count):
        make_plan(strategy=strategy, audit=audit)
    with django_assert_num_queries(3):  # rights, plans, their indicators
        assert len(api.get("/action_plans/detail").json()["action_plans"]) == count


@pytest.mark.parametrize("identifier", ["1", "name", "x" * 300])
def test_plan_is_found_only_by_its_uuid(api: Caller, identifier: str) -> None:
    assert api.get(f"/action_plans/{identifier}").status_code == 400


def test_unknown_plan_returns_404(api: Caller) -> None:
    unknown = uuid4()
    assert fault(api.get(f"/action_plans/{unknown}")) == f"ActionPlan {unknown} could not be found"


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_plans_cannot_be_created_or_replaced_by_a_request(api: Caller, method: str) -> None:
    assert api.call(method, "/action_plans", {}).status_code == 405


def test_readers_cannot_start_cancel_or_delete_a_plan(reader: User) -> None:
    plan, caller = make_plan(), Caller(reader)
    path = f"/action_plans/{plan.uuid}"
    answers = [caller.post(f"{path}/start"), caller.patch(path, to("CANCELLED")), caller.delete(path)]
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert caller.get(path).json()["state"] == "RECOMMENDED"


def test_deleted_plan_cannot_be_started_with_show_deleted(api: Caller) -> None:
    plan = make_plan()
    plan.remove()
    answer = api.post(f"/action_plans/{plan.uuid}/start", **{"X-Show-Deleted": "true"})
    assert answer.status_code == 404


@pytest.mark.parametrize("requested", ["ONGOING", "PENDING", "CANCELLED", "FOO"])
def test_refused_patch_does_not_reveal_the_plan_state_without_permissions(stranger: User, requested: str) -> None:
    answer = Caller(stranger).patch(f"/action_plans/{make_plan().uuid}", to(requested))
    assert answer.status_code == 403
    assert "RECOMMENDED" not in fault(answer)
