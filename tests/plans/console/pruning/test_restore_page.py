"""The console's Restore button, beside an action and on its own page."""

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


def test_beside_what_a_person_skipped_stands_a_button(administrator: Client, plan: ActionPlan) -> None:
    one = plan.actions.get(state="SKIPPED")
    text = administrator.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert f'id="restore-{one.uuid}"' in text
    assert text.count(">Restore</button>") == 1


@pytest.mark.parametrize("number", [1, 30])
def test_the_buttons_cost_no_queries(administrator: Client, django_assert_max_num_queries: Any, number: int) -> None:
    plan = make_plan({f"action {order}": [] for order in range(number)})
    skip_actions(plan, plan.actions.values_list("uuid", flat=True), "alice")
    with django_assert_max_num_queries(20):
        administrator.get(reverse("plans:detail", args=[plan.uuid]))


def test_the_button_restores_the_action(administrator: Client, plan: ActionPlan) -> None:
    answer = restore(administrator, plan.actions.get(state="SKIPPED"), follow=True)
    assert "1 action restored." in answer.content.decode()
    assert not plan.actions.filter(state="SKIPPED").exists()


def test_htmx_loads_the_page_again(administrator: Client, plan: ActionPlan) -> None:
    answer = restore(administrator, plan.actions.get(state="SKIPPED"), headers={"HX-Request": "true"})
    assert answer.headers["HX-Refresh"] == "true"


def test_what_another_tab_restored_is_named(administrator: Client, plan: ActionPlan) -> None:
    one = plan.actions.get(state="SKIPPED")
    restore(administrator, one)
    text = restore(administrator, one, follow=True).content.decode()
    assert "is not skipped: it is PENDING (updated" in text
    assert "State transition" not in text


def test_what_was_skipped_automatically_stays_so_and_says_so(administrator: Client) -> None:
    one = make_plan({"a": []}).actions.get()
    one.skip_automatically("the server is gone")
    one.save_state()
    assert "skipped automatically and cannot be restored" in restore(administrator, one, follow=True).content.decode()


def test_a_plan_that_began_meanwhile_refuses_and_says_why(administrator: Client, plan: ActionPlan) -> None:
    ActionPlan.objects.update(state="ONGOING")
    answer = restore(administrator, plan.actions.get(state="SKIPPED"), follow=True)
    assert "Actions of this plan can no longer be restored: the plan is ONGOING" in answer.content.decode()
    assert plan.actions.filter(state="SKIPPED").count() == 1


def test_on_its_own_page_it_is_restored_too(administrator: Client, plan: ActionPlan) -> None:
    one = plan.actions.get(state="SKIPPED")
    assert "with its plan again." in administrator.get(reverse("actions:detail", args=[one.uuid])).content.decode()
    answer = administrator.post(reverse("actions:restore", args=[one.uuid]), follow=True)
    assert "Action restored." in answer.content.decode()
    assert Action.objects.get(pk=one.pk).state == "PENDING"


def test_a_reader_finds_no_button_and_is_refused(client: Client, reader: User, plan: ActionPlan) -> None:
    client.force_login(reader)
    one = plan.actions.get(state="SKIPPED")
    assert ">Restore</button>" not in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert restore(client, one).status_code == 403
    assert client.post(reverse("actions:restore", args=[one.uuid])).status_code == 403
