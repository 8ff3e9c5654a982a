"""The handling of failures is chosen through the API."""

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
GO_ON = [{"op": "replace", "path": "/on_failure", "value": "continue"}]
START = [{"op": "replace", "path": "/state", "value": "PENDING"}]


def chosen(plan: ActionPlan) -> str:
    return str(ActionPlan.objects.get(pk=plan.pk).on_failure)


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


def test_a_plan_continues_unless_it_was_proposed_otherwise(api: Caller) -> None:
    shown = [api.get(f"/action_plans/{propose([], **how).uuid}").json() for how in ({}, {"on_failure": "stop"})]
    assert [plan["on_failure"] for plan in shown] == ["continue", "stop"]


@pytest.mark.parametrize("state", ["RECOMMENDED", "PENDING"])
def test_it_may_be_patched_until_the_plan_begins(api: Caller, state: str) -> None:
    plan = make_plan(state=state)
    answer = api.patch(f"/action_plans/{plan.uuid}", STOP)
    assert (answer.status_code, answer.json()["on_failure"], answer.json()["state"]) == (200, "stop", state)


@pytest.mark.parametrize("state", ["ONGOING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_after_that_it_may_not(api: Caller, state: str) -> None:
    plan = make_plan(state=state)
    answer = api.patch(f"/action_plans/{plan.uuid}", STOP)
    assert (answer.status_code, chosen(plan)) == (409, "continue")
    assert fault(answer) == f"on_failure update not allowed for actionplan state: {state}"


def test_it_is_chosen_and_the_plan_started_in_one_patch(api: Caller) -> None:
    plan = make_plan()
    answer = api.patch(f"/action_plans/{plan.uuid}", [*START, *STOP])
    assert (answer.json()["state"], answer.json()["on_failure"]) == ("PENDING", "stop")


def test_of_a_patch_that_fails_nothing_is_done(api: Caller) -> None:
    plan = make_plan(state="PENDING")
    assert api.patch(f"/action_plans/{plan.uuid}", [*STOP, *START]).status_code == 400
    assert chosen(plan) == "continue"


def test_of_many_choices_in_one_patch_the_last_is_written_and_no_other(api: Caller) -> None:
    plan = make_plan()
    with CaptureQueriesContext(connection) as queries:
        api.patch(f"/action_plans/{plan.uuid}", [*STOP, *GO_ON] * 3 + STOP)
    assert chosen(plan) == "stop"
    assert words(queries).count("UPDATE") == 1


@pytest.mark.parametrize("value", ["halt", "STOP", None, 1, ["stop"], {}])
def test_there_are_two_choices(api: Caller, value: object) -> None:
    plan = make_plan()
    answer = api.patch(f"/action_plans/{plan.uuid}", [{"op": "replace", "path": "/on_failure", "value": value}])
    assert answer.status_code == 400
    assert fault(answer) == (
        f"Invalid input for field/attribute on_failure. Value: '{value}'. It must be continue or stop."
    )


def test_it_can_not_be_removed(api: Caller) -> None:
    answer = api.patch(f"/action_plans/{make_plan().uuid}", [{"op": "remove", "path": "/on_failure"}])
    assert (answer.status_code, "mandatory" in fault(answer)) == (400, True)


def test_before_1_12_there_is_none(cloud_admin: User) -> None:
    plan = make_plan()
    before = Caller(cloud_admin, "1.11")
    assert "on_failure" not in before.get(f"/action_plans/{plan.uuid}").json()
    assert before.patch(f"/action_plans/{plan.uuid}", STOP).status_code == 400
    assert chosen(plan) == "continue"


def test_who_may_not_change_plans_may_not_choose(reader: User) -> None:
    plan = make_plan()
    assert Caller(reader, "1.12").patch(f"/action_plans/{plan.uuid}", STOP).status_code == 403
    assert chosen(plan) == "continue"
