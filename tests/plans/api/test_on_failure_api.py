"""The field ``on_failure`` of action plans in the API."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.api import Caller, fault
from tests.builders import make_plan
from tests.watcher_site.test_query_counts import words

pytestmark = pytest.mark.django_db
STOP = [{"op": "replace", "path": "/on_failure", "value": "stop"}]
CONTINUE = [{"op": "replace", "path": "/on_failure", "value": "continue"}]
START = [{"op": "replace", "path": "/state", "value": "PENDING"}]


def chosen(plan: ActionPlan) -> str:
    return str(ActionPlan.objects.get(pk=plan.pk).on_failure)


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


def test_on_failure_defaults_to_continue(api: Caller) -> None:
    shown = [api.get(f"/action_plans/{propose([], **how).uuid}").json() for how in ({}, {"on_failure": "stop"})]
    assert [plan["on_failure"] for plan in shown] == ["continue", "stop"]


@pytest.mark.parametrize("state", ["RECOMMENDED", "PENDING"])
def test_on_failure_can_be_changed_until_the_plan_begins(api: Caller, state: str) -> None:
    plan = make_plan(state=state)
    answer = api.patch(f"/action_plans/{plan.uuid}", STOP)
    assert (answer.status_code, answer.json()["on_failure"], answer.json()["state"]) == (200, "stop", state)


@pytest.mark.parametrize("state", ["ONGOING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_on_failure_cannot_be_changed_after_the_plan_began(api: Caller, state: str) -> None:
    plan = make_plan(state=state)
    answer = api.patch(f"/action_plans/{plan.uuid}", STOP)
    assert (answer.status_code, chosen(plan)) == (409, "continue")
    assert fault(answer) == f"on_failure update not allowed for actionplan state: {state}"


def test_on_failure_and_start_can_be_requested_in_one_patch(api: Caller) -> None:
    plan = make_plan()
    answer = api.patch(f"/action_plans/{plan.uuid}", [*START, *STOP])
    assert (answer.json()["state"], answer.json()["on_failure"]) == ("PENDING", "stop")


def test_failed_patch_does_not_change_on_failure(api: Caller) -> None:
    plan = make_plan(state="PENDING")
    assert api.patch(f"/action_plans/{plan.uuid}", [*STOP, *START]).status_code == 400
    assert chosen(plan) == "continue"


def test_patch_with_repeated_on_failure_writes_only_the_last_value(api: Caller) -> None:
    plan = make_plan()
    with CaptureQueriesContext(connection) as queries:
        api.patch(f"/action_plans/{plan.uuid}", [*STOP, *CONTINUE] * 3 + STOP)
    assert chosen(plan) == "stop"
    assert words(queries).count("UPDATE") == 1


@pytest.mark.parametrize("value", ["halt", "STOP", None, 1, ["stop"], {}])
def test_on_failure_other_than_continue_or_stop_is_refused(api: Caller, value: object) -> None:
    plan = make_plan()
    answer = api.patch(f"/action_plans/{plan.uuid}", [{"op": "replace", "path": "/on_failure", "value": value}])
    assert answer.status_code == 400
    assert fault(answer) == (
        f"Invalid input for field/attribute on_failure. Value: '{value}'. It must be continue or stop."
    )


def test_on_failure_cannot_be_removed(api: Caller) -> None:
    answer = api.patch(f"/action_plans/{make_plan().uuid}", [{"op": "remove", "path": "/on_failure"}])
    assert (answer.status_code, "mandatory" in fault(answer)) == (400, True)


def test_on_failure_is_unknown_before_microversion_1_12(cloud_admin: User) -> None:
    plan = make_plan()
    before = Caller(cloud_admin, "1.11")
    assert "on_failure" not in before.get(f"/action_plans/{plan.uuid}").json()
    assert before.patch(f"/action_plans/{plan.uuid}", STOP).status_code == 400
    assert chosen(plan) == "continue"


def test_readers_cannot_change_on_failure(reader: User) -> None:
    plan = make_plan()
    assert Caller(reader, "1.12").patch(f"/action_plans/{plan.uuid}", STOP).status_code == 403
    assert chosen(plan) == "continue"
