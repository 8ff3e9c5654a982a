"""Continuing a plan through the API, with the console's button, and by command."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from plans.models import ActionPlan
from plans.planning.continuation import continue_plan
from tests.api import Caller, fault
from tests.builders import make_plan
from tests.plans.planning.test_continuing import ended

pytestmark = pytest.mark.django_db


@pytest.fixture
def newest(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


def test_the_api_answers_with_the_new_plan_and_where_it_is(newest: Caller) -> None:
    plan = ended({"a": [], "b": []}, {"b": "FAILED"})
    answer = newest.post(f"/action_plans/{plan.uuid}/continue")
    follower = ActionPlan.objects.get(continues=plan)
    assert (answer.status_code, answer.json()["uuid"]) == (201, str(follower.uuid))
    assert answer["Location"].endswith(f"/v1/action_plans/{follower.uuid}")
    assert (answer.json()["state"], answer.json()["continues_uuid"]) == ("RECOMMENDED", str(plan.uuid))
    assert newest.get(f"/action_plans/{plan.uuid}").json()["continued_by_uuid"] == str(follower.uuid)


def test_a_deleted_plan_is_named_on_neither_side(newest: Caller) -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    follower = continue_plan(plan)
    follower.remove()
    assert newest.get(f"/action_plans/{plan.uuid}").json()["continued_by_uuid"] is None
    again = continue_plan(plan)
    plan.remove()
    assert newest.get(f"/action_plans/{again.uuid}").json()["continues_uuid"] is None


def test_what_does_not_allow_it_is_a_conflict(newest: Caller) -> None:
    answer = newest.post(f"/action_plans/{make_plan({'a': []}).uuid}/continue")
    assert answer.status_code == 409
    assert fault(answer).startswith("Only a plan that is CANCELLED or FAILED")


def test_before_1_12_no_plan_is_continued(cloud_admin: User) -> None:
    caller = Caller(cloud_admin, "1.11")
    plan = ended({"a": []}, {"a": "FAILED"})
    assert caller.post(f"/action_plans/{plan.uuid}/continue").status_code == 406
    assert "continues_uuid" not in caller.get(f"/action_plans/{plan.uuid}").json()


def test_a_reader_continues_nothing(reader: User) -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    assert Caller(reader, "1.12").post(f"/action_plans/{plan.uuid}/continue").status_code == 403
    assert ActionPlan.objects.count() == 1


# In the console


def test_the_button_leads_to_the_new_plan_and_both_name_each_other(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = ended({"a": []}, {"a": "FAILED"})
    assert 'id="continue"' in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    answer = client.post(reverse("plans:continue", args=[plan.uuid]))
    follower = ActionPlan.objects.get(continues=plan)
    assert answer["Location"] == reverse("plans:detail", args=[follower.uuid])
    before = client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    after = client.get(reverse("plans:detail", args=[follower.uuid])).content.decode()
    assert "Continued by" in before
    assert str(follower.uuid) in before
    assert 'id="continue"' not in before
    assert ">Continues<" in after
    assert str(plan.uuid) in after


def test_who_may_not_continue_finds_no_button_and_is_refused(client: Client, reader: User) -> None:
    client.force_login(reader)
    plan = ended({"a": []}, {"a": "FAILED"})
    assert 'id="continue"' not in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert client.post(reverse("plans:continue", args=[plan.uuid])).status_code == 403


# By command


def test_the_command_prints_the_new_plan(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    call_command("continue_plan", str(plan.uuid))
    assert capsys.readouterr().out == f"{ActionPlan.objects.get(continues=plan).uuid}\n"


def test_the_command_refuses_what_is_no_uuid() -> None:
    with pytest.raises(CommandError, match="argument plan: invalid UUID value: 'x'"):
        call_command("continue_plan", "x")


def test_the_command_refuses_a_plan_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="could not be found"):
        call_command("continue_plan", str(uuid4()))
