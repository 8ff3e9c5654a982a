"""The Restore button in the table of actions and on the page of an action."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from actions.operations.skipping import skip_actions
from plans.models import ActionPlan
from tests.builders import make_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def plan() -> ActionPlan:
    plan = make_plan({"a": [], "b": []})
    skip_actions(plan, [plan.actions.earliest("pk").uuid], "alice", "closing")
    return plan


def restore(client: Client, one: Action, **options: Any) -> Any:
    url = reverse("plans:restore", args=[one.action_plan.uuid])
    return client.post(url, {"only": str(one.uuid)}, **options)


def test_action_skipped_by_a_user_has_a_restore_button(administrator: Client, plan: ActionPlan) -> None:
    one = plan.actions.get(state="SKIPPED")
    text = administrator.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert f'id="restore-{one.uuid}"' in text
    assert text.count(">Restore</button>") == 1


@pytest.mark.parametrize("number", [1, 30])
def test_query_count_does_not_depend_on_the_number_of_buttons(
    administrator: Client, django_assert_max_num_queries: Any, number: int
) -> None:
    plan = make_plan({f"action {order}": [] for order in range(number)})
    skip_actions(plan, plan.actions.values_list("uuid", flat=True), "alice")
    with django_assert_max_num_queries(20):
        administrator.get(reverse("plans:detail", args=[plan.uuid]))


def test_button_restores_the_action(administrator: Client, plan: ActionPlan) -> None:
    answer = restore(administrator, plan.actions.get(state="SKIPPED"), follow=True)
    assert "1 action restored." in answer.content.decode()
    assert not plan.actions.filter(state="SKIPPED").exists()


def test_restore_by_htmx_reloads_the_page(administrator: Client, plan: ActionPlan) -> None:
    answer = restore(administrator, plan.actions.get(state="SKIPPED"), headers={"HX-Request": "true"})
    assert answer.headers["HX-Refresh"] == "true"


def test_action_restored_concurrently_is_reported(administrator: Client, plan: ActionPlan) -> None:
    one = plan.actions.get(state="SKIPPED")
    restore(administrator, one)
    text = restore(administrator, one, follow=True).content.decode()
    assert "is not skipped: it is PENDING (updated" in text
    assert "State transition" not in text


def test_automatically_skipped_action_cannot_be_restored(administrator: Client) -> None:
    one = make_plan({"a": []}).actions.get()
    one.skip_automatically("the server is gone")
    one.save_state()
    assert "skipped automatically and cannot be restored" in restore(administrator, one, follow=True).content.decode()


def test_restore_in_a_started_plan_is_refused_with_the_reason(administrator: Client, plan: ActionPlan) -> None:
    ActionPlan.objects.update(state="ONGOING")
    answer = restore(administrator, plan.actions.get(state="SKIPPED"), follow=True)
    assert "Actions of this plan can no longer be restored: the plan is ONGOING" in answer.content.decode()
    assert plan.actions.filter(state="SKIPPED").count() == 1


def test_action_is_restored_on_its_own_page(administrator: Client, plan: ActionPlan) -> None:
    one = plan.actions.get(state="SKIPPED")
    assert "with its plan again." in administrator.get(reverse("actions:detail", args=[one.uuid])).content.decode()
    answer = administrator.post(reverse("actions:restore", args=[one.uuid]), follow=True)
    assert "Action restored." in answer.content.decode()
    assert Action.objects.get(pk=one.pk).state == "PENDING"


def test_readers_see_no_restore_button_and_are_refused(client: Client, reader: User, plan: ActionPlan) -> None:
    client.force_login(reader)
    one = plan.actions.get(state="SKIPPED")
    assert ">Restore</button>" not in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert restore(client, one).status_code == 403
    assert client.post(reverse("actions:restore", args=[one.uuid])).status_code == 403
