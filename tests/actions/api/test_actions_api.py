"""Reading actions."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from tests.api import Caller, fault
from tests.builders import action, make_audit, make_plan

pytestmark = pytest.mark.django_db

SHORT = {"uuid", "state", "action_type", "action_plan_uuid", "parents", "links"}
DETAILED = SHORT | {"description", "input_parameters", "status_message", "created_at", "updated_at", "deleted_at"}


def test_the_short_list_has_the_short_fields(api: Caller) -> None:
    make_plan({"a": []})
    assert set(api.get("/actions").json()["actions"][0]) == SHORT


def test_the_detailed_list_has_all_fields(api: Caller) -> None:
    make_plan({"a": []})
    assert set(api.get("/actions/detail").json()["actions"][0]) == DETAILED


def test_status_message_is_absent_before_1_5(cloud_admin: User) -> None:
    make_plan({"a": []})
    assert set(Caller(cloud_admin, "1.4").get("/actions/detail").json()["actions"][0]) == DETAILED - {"status_message"}


def test_action_shows_its_parents_its_plan_and_a_link_to_itself(api: Caller) -> None:
    plan = make_plan({"a": [], "b": [], "c": ["a", "b"]})
    child = action(plan, "c")
    shown = api.get(f"/actions/{child.uuid}").json()
    assert shown["parents"] == [str(action(plan, "a").uuid), str(action(plan, "b").uuid)]
    assert shown["action_plan_uuid"] == str(plan.uuid)
    assert shown["links"][0] == {"href": f"http://testserver/v1/actions/{child.uuid}", "rel": "self"}


def test_the_skipped_state_is_shown_at_every_version(cloud_admin: User) -> None:
    plan = make_plan({"a": []})
    Caller(cloud_admin).patch(
        f"/actions/{action(plan, 'a').uuid}", [{"op": "replace", "path": "/state", "value": "SKIPPED"}]
    )
    assert Caller(cloud_admin, None).get("/actions").json()["actions"][0]["state"] == "SKIPPED"


def test_actions_are_filtered_by_plan(api: Caller) -> None:
    make_plan({"a": []})
    plan = make_plan({"b": []})
    listed = api.get(f"/actions/?action_plan_uuid={plan.uuid}").json()["actions"]
    assert [row["uuid"] for row in listed] == [str(action(plan, "b").uuid)]


def test_actions_are_filtered_by_audit(api: Caller) -> None:
    make_plan({"a": []})
    plan = make_plan({"b": []}, audit=make_audit())
    listed = api.get(f"/actions/?audit_uuid={plan.audit.uuid}").json()["actions"]
    assert [row["uuid"] for row in listed] == [str(action(plan, "b").uuid)]


def test_filter_without_matches_returns_an_empty_list(api: Caller) -> None:
    make_plan({"a": []})
    assert api.get(f"/actions/?action_plan_uuid={uuid4()}").json()["actions"] == []


def test_plan_and_audit_filters_together_are_refused(api: Caller) -> None:
    answer = api.get(f"/actions/?action_plan_uuid={uuid4()}&audit_uuid={uuid4()}")
    assert answer.status_code == 400
    assert fault(answer) == "Filtering actions on both audit and action-plan is prohibited"


@pytest.mark.parametrize("count", [10, 300])
@pytest.mark.parametrize("path", ["/actions/detail", "/actions"])
def test_list_query_count_does_not_depend_on_the_number_of_actions(
    api: Caller, django_assert_num_queries: Any, count: int, path: str
) -> None:
    make_plan({f"a{n}": [f"a{n - 1}"] if n else [] for n in range(count)})
    with django_assert_num_queries(2):  # rights, actions with their parents
        assert len(api.get(path).json()["actions"]) == count


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_collection_is_read_only(api: Caller, method: str) -> None:
    assert api.call(method, "/actions").status_code == 405
