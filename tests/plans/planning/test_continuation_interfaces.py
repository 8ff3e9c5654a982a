"""Continuing a plan through the API, by the button of the console, and by command."""

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
from tests.plans.planning.test_continuation import ended

pytestmark = pytest.mark.django_db


@pytest.fixture
def newest(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


def test_api_returns_the_new_plan_and_its_location(newest: Caller) -> None:
    plan = ended({"a": [], "b": []}, {"b": "FAILED"})
    answer = newest.post(f"/action_plans/{plan.uuid}/continue")
    follower = ActionPlan.objects.get(continues=plan)
    assert (answer.status_code, answer.json()["uuid"]) == (201, str(follower.uuid))
    assert answer["Location"].endswith(f"/v1/action_plans/{follower.uuid}")
    assert (answer.json()["state"], answer.json()["continues_uuid"]) == ("RECOMMENDED", str(plan.uuid))
    assert newest.get(f"/action_plans/{plan.uuid}").json()["continued_by_uuid"] == str(follower.uuid)


def test_deleted_plan_is_not_shown_as_continuation_or_continued_plan(newest: Caller) -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    follower = continue_plan(plan)
    follower.remove()
    assert newest.get(f"/action_plans/{plan.uuid}").json()["continued_by_uuid"] is None
    again = continue_plan(plan)
    plan.remove()
    assert newest.get(f"/action_plans/{again.uuid}").json()["continues_uuid"] is None


def test_continuing_a_plan_in_another_state_is_a_conflict(newest: Caller) -> None:
    answer = newest.post(f"/action_plans/{make_plan({'a': []}).uuid}/continue")
    assert answer.status_code == 409
    assert fault(answer).startswith("Only a plan that is CANCELLED or FAILED")


def test_continue_is_not_acceptable_before_microversion_1_12(cloud_admin: User) -> None:
    caller = Caller(cloud_admin, "1.11")
    plan = ended({"a": []}, {"a": "FAILED"})
    assert caller.post(f"/action_plans/{plan.uuid}/continue").status_code == 406
    assert "continues_uuid" not in caller.get(f"/action_plans/{plan.uuid}").json()


def test_readers_cannot_continue_a_plan(reader: User) -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    assert Caller(reader, "1.12").post(f"/action_plans/{plan.uuid}/continue").status_code == 403
    assert ActionPlan.objects.count() == 1


# Console


def test_button_redirects_to_the_new_plan_and_both_pages_link_each_other(client: Client, cloud_admin: User) -> None:
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


def test_readers_see_no_continue_button_and_are_refused(client: Client, reader: User) -> None:
    client.force_login(reader)
    plan = ended({"a": []}, {"a": "FAILED"})
    assert 'id="continue"' not in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert client.post(reverse("plans:continue", args=[plan.uuid])).status_code == 403


# Command


def test_command_prints_the_uuid_of_the_new_plan(capsys: pytest.CaptureFixture[str]) -> None:
    plan = ended({"a": []}, {"a": "FAILED"})
    call_command("continue_plan", str(plan.uuid))
    assert capsys.readouterr().out == f"{ActionPlan.objects.get(continues=plan).uuid}\n"


def test_command_refuses_an_invalid_uuid() -> None:
    with pytest.raises(CommandError, match=r"There is no action plan x\."):
        call_command("continue_plan", "x")


def test_command_refuses_an_unknown_plan() -> None:
    with pytest.raises(CommandError, match="There is no action plan"):
        call_command("continue_plan", str(uuid4()))
