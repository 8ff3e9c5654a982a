"""The preflight of a plan, through the API."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import Action
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def newest(reader: User) -> Caller:
    return Caller(reader, "1.12")


def failing(number: int, plan: ActionPlan | None = None) -> ActionPlan:
    """Make a plan of one action that passes and then some that fail."""
    plan = plan or make_plan({"fine": []})
    for place in range(number):
        parameters = {"message": f"bad-{place}", "fail_execute": True}
        Action.objects.create(action_plan=plan, action_type="nop", input_parameters=parameters)
    return plan


def test_preflight_counts_outcomes_and_lists_actions_that_would_not_succeed(newest: Caller) -> None:
    plan = failing(1)
    bad = action(plan, "bad-0")
    answer = newest.get(f"/action_plans/{plan.uuid}/preflight").json()
    [found] = answer.pop("actions")
    links = found.pop("links")
    assert abs(timezone.now() - datetime.fromisoformat(answer.pop("computed_at"))) < timedelta(minutes=5)
    assert answer == {
        "action_plan_uuid": str(plan.uuid),
        "cloud_is_mirrored": False,
        "cloud_read_at": None,
        "counts": {"SUCCEEDED": 1, "SKIPPED": 0, "FAILED": 1, "CANCELLED": 0, "UNKNOWN": 0},
        "ended": {},
    }
    assert found == {
        "uuid": str(bad.uuid),
        "name": bad.name,
        "action_type": "nop",
        "target": None,
        "outcome": "FAILED",
        "status_message": f"Action failed in execute: The action {bad.uuid} execution failed.",
    }
    assert links[0]["href"].endswith(f"/v1/actions/{bad.uuid}")
    assert action(plan, "bad-0").state == "PENDING"


def test_pages_list_each_action_once(newest: Caller) -> None:
    plan, seen = failing(5), []
    address = f"/action_plans/{plan.uuid}/preflight?limit=2"
    while address:
        answer = newest.get(address).json()
        seen += [found["uuid"] for found in answer["actions"]]
        address = answer.get("next", "").partition("/v1")[2]
    expected = plan.actions.exclude(input_parameters__message="fine").order_by("pk")
    assert seen == [str(found.uuid) for found in expected]


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("limit=x", 400, "Invalid input for field/attribute limit"),
        ("marker=x", 400, "Invalid input for field/attribute marker"),
        (f"marker={UUID(int=1)}", 404, "could not be found among those that are foreseen"),
        ("sort_key=uuid", 400, 'Unknown argument: "sort_key"'),
    ],
)
def test_invalid_query_is_refused_with_its_field(newest: Caller, query: str, status: int, words: str) -> None:
    answer = newest.get(f"/action_plans/{failing(1).uuid}/preflight?{query}")
    assert (answer.status_code, words in fault(answer)) == (status, True)


def test_preflight_of_an_ended_plan_is_refused(newest: Caller) -> None:
    answer = newest.get(f"/action_plans/{make_plan({'a': []}, state='FAILED').uuid}/preflight")
    assert (answer.status_code, "nothing of it begins any more" in fault(answer)) == (409, True)


def test_preflight_of_an_unknown_plan_returns_404(newest: Caller) -> None:
    assert newest.get(f"/action_plans/{uuid4()}/preflight").status_code == 404


def test_preflight_is_not_acceptable_before_microversion_1_12(reader: User) -> None:
    assert Caller(reader, "1.11").get(f"/action_plans/{failing(0).uuid}/preflight").status_code == 406


@pytest.mark.parametrize("rights", [[], ["view_actionplan"], ["view_action"]])
def test_preflight_requires_the_view_permissions_for_plans_and_actions(stranger: User, rights: list[str]) -> None:
    stranger.user_permissions.set(Permission.objects.filter(codename__in=rights))
    caller = Caller(User.objects.get(pk=stranger.pk), "1.12")
    assert caller.get(f"/action_plans/{failing(0).uuid}/preflight").status_code == 403


@pytest.mark.parametrize("size", [1, 5])
def test_query_count_does_not_depend_on_the_number_of_actions(
    newest: Caller, size: int, django_assert_max_num_queries: Any
) -> None:
    plan = failing(size)
    with django_assert_max_num_queries(21):
        assert newest.get(f"/action_plans/{plan.uuid}/preflight").status_code == 200


@pytest.mark.parametrize("size", [1, 5])
def test_stored_result_uses_fewer_queries(newest: Caller, size: int, django_assert_max_num_queries: Any) -> None:
    address = f"/action_plans/{failing(size).uuid}/preflight"
    newest.get(address)
    with django_assert_max_num_queries(10):
        assert newest.get(address).status_code == 200


def test_api_returns_the_result_stored_by_the_console(newest: Caller, client: Client, reader: User) -> None:
    plan = failing(1)
    client.force_login(reader)
    client.get(reverse("plans:preflight", args=[plan.uuid]))
    computed_at = plan.preflight_results.get().computed_at
    answer = newest.get(f"/action_plans/{plan.uuid}/preflight").json()
    assert datetime.fromisoformat(answer["computed_at"]) == computed_at
