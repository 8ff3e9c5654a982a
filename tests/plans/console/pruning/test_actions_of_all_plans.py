"""Skipping and restoring actions of several plans in the list of all actions."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from actions.console import views
from actions.models import Action
from actions.operations.skipping import skip_action, skip_actions
from plans.console.pruning import skips
from plans.models import ActionPlan
from tests.builders import action, make_plan
from watcher_site.models import HistoryEntry


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def plans(db: None) -> list[ActionPlan]:
    """Three plans that have not begun, with 30 actions each, more than a page of 25 in all."""
    return [make_plan({f"{name}{number}": [] for number in range(30)}) for name in "abc"]


def send(client: Client, verb: str, **fields: Any) -> HttpResponse:
    return client.post(reverse(f"pruning:{verb}"), fields, follow=True)


def confirmation(client: Client, verb: str, place: str = "") -> str:
    """Return the fingerprint in the dialog about all matching actions."""
    dialog = send(client, verb, all="matching", place=place).content.decode()
    return re.search(r'name="confirmed" value="(\w+)"', dialog)[1]


def confirm(client: Client, verb: str, place: str = "", **fields: Any) -> HttpResponse:
    return send(client, verb, all="matching", place=place, confirmed=confirmation(client, verb, place), **fields)


def skipped() -> int:
    return Action.objects.filter(state="SKIPPED").count()


def test_action_list_offers_to_skip_all_actions_of_all_pages(administrator: Client, plans: list[ActionPlan]) -> None:
    text = administrator.get(reverse("actions:list")).content.decode()
    assert "Skip all 90…" in text
    assert text.count('name="actions"') == 50
    assert '<input type="checkbox" class="form-check-input" id="choose-all"' in text


def test_actions_of_started_plans_are_not_offered(administrator: Client, plans: list[ActionPlan]) -> None:
    ActionPlan.objects.filter(pk=plans[0].pk).update(state="ONGOING")
    text = administrator.get(reverse("actions:list"), {"action_plan": str(plans[0].uuid)}).content.decode()
    assert 'name="actions"' not in text
    assert "Skip all 60…" in administrator.get(reverse("actions:list")).content.decode()


def test_dialog_shows_the_numbers_of_actions_and_plans(administrator: Client, plans: list[ActionPlan]) -> None:
    text = send(administrator, "skip", all="matching", place="").content.decode()
    assert "Skip all 90 matching actions?" in text
    assert "in 3 plans" in text
    assert skipped() == 0


def test_all_matching_actions_of_all_plans_are_skipped_with_one_reason(
    administrator: Client, plans: list[ActionPlan]
) -> None:
    response = confirm(administrator, "skip", reason="closing")
    assert "90 actions skipped." in response.content.decode()
    assert set(Action.objects.values_list("state", "status_message")) == {
        ("SKIPPED", "Action skipped by user. Reason: closing")
    }


def test_more_actions_than_the_limit_are_not_offered_for_confirmation(
    administrator: Client, plans: list[ActionPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skips, "MOST_OF_ALL_PLANS", 89)
    text = send(administrator, "skip", all="matching", place="").content.decode()
    assert "90 actions match, and at most 89 can be changed at once. Set further filters." in text
    assert 'name="confirmed"' not in text


def test_list_counts_no_more_actions_than_can_be_skipped_together(
    administrator: Client, plans: list[ActionPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "MOST_COUNTED", 89)
    text = administrator.get(reverse("actions:list")).content.decode()
    assert 'id="skip-matching"' not in text
    assert "Set filters to skip or restore all actions that match: at most 89 at once." in text


def test_list_with_an_invalid_filter_offers_no_action(administrator: Client, plans: list[ActionPlan]) -> None:
    response = administrator.get(reverse("actions:list"), {"action_plan": "unknown"})
    assert response.status_code == 200
    assert "skip-matching" not in response.content.decode()


def test_history_of_each_plan_has_its_own_skips(administrator: Client, plans: list[ActionPlan]) -> None:
    confirm(administrator, "skip")
    for plan in plans:
        uuids = set(plan.actions.values_list("uuid", flat=True))
        assert set(HistoryEntry.objects.filter(within=plan.uuid).values_list("object_uuid", flat=True)) == uuids


def test_only_actions_that_match_the_filters_are_skipped(administrator: Client, plans: list[ActionPlan]) -> None:
    confirm(administrator, "skip", place=f"action_plan={plans[1].uuid}&per_page=25")
    assert set(Action.objects.filter(state="SKIPPED").values_list("action_plan", flat=True)) == {plans[1].pk}
    assert skipped() == 30


def test_invalid_filter_skips_no_actions(administrator: Client, plans: list[ActionPlan]) -> None:
    text = send(administrator, "skip", all="matching", place="action_plan=unknown").content.decode()
    assert "No actions left to skip" in text


def test_no_action_is_skipped_if_other_actions_match_than_were_confirmed(
    administrator: Client, plans: list[ActionPlan]
) -> None:
    confirmed = confirmation(administrator, "skip")
    skip_action(action(plans[2], "c0").uuid, "bob")
    response = send(administrator, "skip", all="matching", place="", confirmed=confirmed, reason="closing")
    text = response.content.decode()
    assert response.status_code == 409
    assert "Skip all 89 matching actions?" in text
    assert "closing</textarea>" in text
    assert skipped() == 1


def test_no_selected_action_is_skipped_if_one_of_the_plans_began(
    administrator: Client, plans: list[ActionPlan]
) -> None:
    chosen = [action(plans[0], "a0").uuid, action(plans[1], "b0").uuid]
    ActionPlan.objects.filter(pk=plans[1].pk).update(state="ONGOING")
    response = send(administrator, "skip", actions=chosen, reason="closing", confirmed="yes")
    text = response.content.decode()
    assert response.status_code == 409
    assert "No actions were skipped." in text
    assert f"{str(plans[1].uuid)[:8]}): Actions of this plan can no longer be skipped: the plan is ONGOING" in text
    assert "Skip the rest" in text
    assert skipped() == 0


def test_selected_actions_of_two_plans_are_skipped_and_the_page_is_kept(
    administrator: Client, plans: list[ActionPlan]
) -> None:
    chosen = [action(plans[0], "a0").uuid, action(plans[1], "b0").uuid]
    response = send(administrator, "skip", actions=chosen, place="state=PENDING&page=2", confirmed="yes")
    assert "2 actions skipped." in response.content.decode()
    assert response.redirect_chain[-1][0] == (f"/console/actions/?state=PENDING&page=2#action-{str(chosen[0])[:8]}")


def test_all_matching_actions_of_all_plans_are_restored_after_confirmation(
    administrator: Client, plans: list[ActionPlan]
) -> None:
    for plan in plans[:2]:
        skip_actions(plan, plan.actions.values_list("uuid", flat=True), "alice")
    assert "Restore 60 actions?" in send(administrator, "restore", all="matching", place="").content.decode()
    assert skipped() == 60
    assert "60 actions restored." in confirm(administrator, "restore").content.decode()
    assert skipped() == 0


def test_selected_actions_of_two_plans_are_restored(administrator: Client, plans: list[ActionPlan]) -> None:
    for plan in plans[:2]:
        skip_actions(plan, plan.actions.values_list("uuid", flat=True), "alice")
    chosen = [action(plans[0], "a0").uuid, action(plans[1], "b0").uuid]
    assert "2 actions restored." in send(administrator, "restore", skipped=chosen).content.decode()
    assert skipped() == 58


def test_skip_without_a_selection_is_refused(administrator: Client, plans: list[ActionPlan]) -> None:
    assert "Select at least one action." in send(administrator, "skip").content.decode()


def test_readers_see_no_skip_buttons_and_are_refused(client: Client, reader: User, plans: list[ActionPlan]) -> None:
    client.force_login(reader)
    text = client.get(reverse("actions:list")).content.decode()
    assert 'name="actions"' not in text
    assert 'id="selection"' not in text
    response = client.post(reverse("pruning:skip"), {"actions": action(plans[0], "a0").uuid, "confirmed": "yes"})
    assert response.status_code == 403
    assert skipped() == 0


@pytest.mark.parametrize("number", [1, 3])
def test_skip_query_count_does_not_depend_on_the_number_of_plans(
    administrator: Client, plans: list[ActionPlan], django_assert_max_num_queries: Any, number: int
) -> None:
    ActionPlan.objects.filter(pk__in=[plan.pk for plan in plans[number:]]).update(state="SUCCEEDED")
    confirmed = confirmation(administrator, "skip")
    with django_assert_max_num_queries(16):
        administrator.post(reverse("pruning:skip"), {"all": "matching", "place": "", "confirmed": confirmed})
    assert skipped() == 30 * number


def test_updated_list_has_new_buttons_if_only_rows_of_other_pages_changed(
    administrator: Client, plans: list[ActionPlan]
) -> None:
    version = re.search(r'hx-ptag="(\w+)"', administrator.get(reverse("actions:list")).content.decode())[1]
    skip_action(action(plans[0], "a0").uuid, "bob")
    response = administrator.get(reverse("actions:list"), headers={"HX-Request": "true", "HX-PTag": version})
    assert "Skip all 89…" in response.content.decode()
