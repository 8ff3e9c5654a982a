"""The preflight page of a plan in the console."""

import re
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from plans.console.preflight import ACTIONS_PER_PAGE
from plans.models import ActionPlan
from plans.preflight import preflight
from tests.builders import action, make_plan
from tests.plans.api.test_preflight_api import failing

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


def page(browser: Client, plan: ActionPlan, query: str = "") -> str:
    return " ".join(browser.get(f"{reverse('plans:preflight', args=[plan.uuid])}{query}").content.decode().split())


def test_plan_page_links_the_preflight_for_readers(browser: Client) -> None:
    plan = make_plan({"a": []})
    address = reverse("plans:preflight", args=[plan.uuid])
    assert address in browser.get(reverse("plans:detail", args=[plan.uuid])).content.decode()


@pytest.mark.parametrize("state", ["SUCCEEDED", "CANCELLING"])
def test_ended_or_cancelling_plan_has_no_preflight_link(browser: Client, state: str) -> None:
    plan = make_plan({"a": []}, state=state)
    assert 'id="preflight"' not in browser.get(reverse("plans:detail", args=[plan.uuid])).content.decode()


def test_preflight_of_a_plan_that_would_succeed_has_no_table(browser: Client) -> None:
    shown = page(browser, make_plan({"a": [], "b": ["a"]}))
    assert "In the current state of the cloud, all 2 actions would succeed. No action was executed." in shown
    assert "<table" not in shown


def test_preflight_counts_outcomes_and_lists_actions_that_would_not_succeed(browser: Client) -> None:
    plan = failing(1)
    bad = action(plan, "bad-0")
    shown = page(browser, plan)
    assert "Of 2 actions, 1 would fail in the current state of the cloud." in shown
    assert "1 FAILED" in shown
    assert f"would fail in execute: The action <bdi>{bad.called}</bdi> execution failed." in shown
    assert reverse("actions:detail", args=[bad.uuid]) in shown
    assert reverse("actions:detail", args=[action(plan, "fine").uuid]) not in shown


@pytest.mark.parametrize("number", [1, 2])
def test_german_verdict_is_grammatical_for_each_number_of_actions(browser: Client, number: int) -> None:
    plan = failing(number)
    answer = browser.get(reverse("plans:preflight", args=[plan.uuid]), headers={"accept-language": "de"})
    shown = " ".join(answer.content.decode().split())
    verdict = f"Vorhersage für {number + 1} Aktionen im jetzigen Zustand der Cloud: {number} fehlgeschlagen."
    assert verdict in shown


def test_preflight_of_a_plan_whose_actions_are_all_skipped_counts_no_outcomes(browser: Client) -> None:
    plan = make_plan({"a": []})
    plan.actions.update(state="SKIPPED")
    text = page(browser, plan)
    assert "No actions of this plan are left to run." in text
    assert "would succeed" not in text


def test_skips_are_described_in_the_conditional(browser: Client) -> None:
    plan = make_plan({"a": []})
    plan.actions.update(input_parameters={"message": "a", "skip_pre_condition": True})
    shown = page(browser, plan).replace("<wbr>", "")
    assert "would be skipped: Skipped in pre_condition" in shown
    assert "was skipped" not in shown


def test_preflight_is_filtered_by_outcome(browser: Client) -> None:
    plan = failing(1)
    shown = page(browser, plan, "?outcome=SUCCEEDED")
    assert str(action(plan, "fine").uuid) in shown
    assert str(action(plan, "bad-0").uuid) not in shown


def test_unknown_outcome_filter_is_ignored(browser: Client) -> None:
    assert "Actions that would not succeed" in page(browser, failing(1), "?outcome=GREEN")


def test_list_of_outcomes_is_paginated(browser: Client) -> None:
    plan = failing(ACTIONS_PER_PAGE + 1)
    last = str(action(plan, f"bad-{ACTIONS_PER_PAGE}").uuid)
    assert [last in page(browser, plan, query) for query in ("", "?page=2")] == [False, True]


def test_preflight_of_an_ended_plan_is_refused_with_the_reason(browser: Client) -> None:
    plan = make_plan({"a": []}, state="FAILED")
    answer = browser.get(reverse("plans:preflight", args=[plan.uuid]), follow=True)
    assert answer.redirect_chain == [(reverse("plans:detail", args=[plan.uuid]), 302)]
    assert "nothing of it begins any more" in answer.content.decode()


def test_preflight_shows_when_a_mirrored_cloud_was_read(browser: Client, settings: Settings) -> None:
    settings.CLOUD = "tests.plans.preflight.test_preflight.MirroredCloud"
    assert "The cloud has not been read yet" in page(browser, make_plan({"a": []}))


def test_preflight_is_refused_without_the_view_permission_for_plans(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("plans:preflight", args=[make_plan().uuid])).status_code == 403


def test_preflight_of_an_unknown_plan_returns_404(browser: Client) -> None:
    assert browser.get(reverse("plans:preflight", args=[uuid4()])).status_code == 404


@pytest.mark.parametrize("size", [1, 10])
def test_query_count_does_not_depend_on_the_number_of_actions(
    browser: Client, size: int, django_assert_max_num_queries: Any
) -> None:
    plan = failing(size)
    with django_assert_max_num_queries(23):
        page(browser, plan)


@pytest.mark.parametrize("size", [1, 10])
def test_stored_result_uses_fewer_queries(browser: Client, size: int, django_assert_max_num_queries: Any) -> None:
    plan = failing(size)
    page(browser, plan)
    with django_assert_max_num_queries(10):
        page(browser, plan)


def test_pages_and_filters_of_a_result_use_one_computation(browser: Client) -> None:
    plan = failing(ACTIONS_PER_PAGE + 1)
    page(browser, plan)
    with patch("plans.preflight_storage.preflight") as computation:
        page(browser, plan, "?page=2")
        page(browser, plan, "?outcome=FAILED")
    computation.assert_not_called()


def test_check_again_button_computes_another_result(browser: Client) -> None:
    plan = failing(1)
    page(browser, plan)
    answer = browser.post(reverse("plans:preflight", args=[plan.uuid]))
    assert answer.headers["Location"] == reverse("plans:preflight", args=[plan.uuid])
    with patch("plans.preflight_storage.preflight", wraps=preflight) as computation:
        page(browser, plan)
    computation.assert_called_once()


def test_check_again_is_refused_without_the_view_permission_for_plans(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.post(reverse("plans:preflight", args=[make_plan().uuid])).status_code == 403


def test_preflight_page_shows_when_its_result_was_computed(browser: Client) -> None:
    plan = failing(1)
    page(browser, plan)
    plan.preflight_results.update(computed_at=timezone.now() - timedelta(minutes=3))
    assert re.search(r"As of <time [^>]*>3 minutes ago</time>", page(browser, plan))


@pytest.mark.django_db(transaction=True)
def test_result_is_stored_outside_the_read_only_transaction(browser: Client) -> None:
    plan = failing(1)
    page(browser, plan)
    assert plan.preflight_results.count() == 1
