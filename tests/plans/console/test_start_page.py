"""The confirmation before a plan starts."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from actions.models import Action
from plans.models import ActionPlan
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import make_plan

Assertion = Any


@pytest.fixture
def administrator(client: Client, django_user_model: type[User]) -> Client:
    client.force_login(django_user_model.objects.create_superuser("alice"))
    return client


def migration(server: Any, source: str = "compute1", destination: str = "compute2") -> dict[str, Any]:
    return {
        "migration_type": "live",
        "resource_id": str(server),
        "resource_name": f"web-{server}",
        "source_node": source,
        "destination_node": destination,
    }


def make_migrations(number: int) -> ActionPlan:
    plan = make_plan({str(one): [] for one in range(number)})
    for one, action in enumerate(plan.actions.order_by("pk")):
        Action.objects.filter(pk=action.pk).update(
            action_type="migrate", target=str(one), input_parameters=migration(one)
        )
    return plan


def confirmation(client: Client, plan: ActionPlan, **headers: str) -> str:
    answer: HttpResponse = client.get(reverse("plans:start", args=[plan.uuid]), headers=headers)
    return " ".join(answer.content.decode().split())


def test_confirmation_counts_actions_by_type_and_names_servers_and_nodes(administrator: Client) -> None:
    plan = make_migrations(6)
    Action.objects.filter(pk=plan.actions.order_by("pk")[5].pk).update(state="SKIPPED")
    text = confirmation(administrator, plan)
    assert '5: <span class="secondary">5 migrate</span>' in text
    assert "<bdi>web-0</bdi>, <bdi>web-1</bdi>, <bdi>web-2</bdi>, <bdi>web-3</bdi> and 1 more" in text
    assert "<bdi>compute1</bdi>, <bdi>compute2</bdi>" in text
    assert "<dt>Skipped</dt> <dd> 1 </dd>" in text


def test_confirmation_says_that_the_plan_begins_now(administrator: Client) -> None:
    assert "now, as soon as an applier is free" in confirmation(administrator, make_migrations(1))


def test_confirmation_shows_the_scheduled_time(administrator: Client) -> None:
    plan = make_migrations(1)
    ActionPlan.objects.filter(pk=plan.pk).update(opens_at=datetime(2050, 3, 1, 22, tzinfo=UTC), zone="UTC")
    assert "Tue 2050-03-01 22:00 UTC" in confirmation(administrator, plan)


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "The plan has no actions: it ends at once when it is started."),
        (1, "The only action is skipped: the plan ends at once when it is started."),
        (3, "All 3 actions are skipped: the plan ends at once when it is started."),
    ],
)
def test_confirmation_says_that_no_action_would_run(administrator: Client, number: int, message: str) -> None:
    plan = make_migrations(number)
    plan.actions.update(state="SKIPPED")
    assert message in confirmation(administrator, plan)


def test_confirmation_of_a_plan_with_a_pending_action_has_no_warning(administrator: Client) -> None:
    assert "ends at once" not in confirmation(administrator, make_migrations(1))


@pytest.mark.parametrize(
    ("number", "message"), [(1, "The only action would be skipped:"), (3, "All 3 actions would be skipped:")]
)
def test_preflight_says_that_exclusions_skip_all_actions(administrator: Client, number: int, message: str) -> None:
    plan = make_migrations(number)
    make_exclusion(action_types=["migrate"])
    page = administrator.get(reverse("plans:preflight", args=[plan.uuid]), headers={"hx-request": "true"})
    assert message in " ".join(page.content.decode().split())


def test_confirmation_warns_that_no_applier_runs(administrator: Client) -> None:
    assert "No applier is running" in confirmation(administrator, make_migrations(1))


def test_confirmation_page_does_not_start_the_plan(administrator: Client) -> None:
    plan = make_migrations(1)
    confirmation(administrator, plan)
    plan.refresh_from_db()
    assert plan.state == "RECOMMENDED"


def test_confirmation_dialog_requests_the_preflight(administrator: Client) -> None:
    plan = make_migrations(1)
    where = reverse("plans:preflight", args=[plan.uuid])
    assert f'hx-get="{where}"' in confirmation(administrator, plan, hx_request="true")


def test_preflight_in_the_dialog_contains_only_its_result(administrator: Client) -> None:
    plan = make_plan({"a": []})
    answer = administrator.get(reverse("plans:preflight", args=[plan.uuid]), headers={"hx-request": "true"})
    text = answer.content.decode()
    assert "the action would succeed" in " ".join(text.split())
    assert "<html" not in text


def test_preflight_of_an_ended_plan_in_the_dialog_is_a_conflict(administrator: Client) -> None:
    plan = make_plan({"a": []}, state=ActionPlan.State.SUCCEEDED)
    answer = administrator.get(reverse("plans:preflight", args=[plan.uuid]), headers={"hx-request": "true"})
    assert answer.status_code == 409


@pytest.mark.parametrize("number", [1, 30])
def test_confirmation_query_count_does_not_depend_on_the_number_of_actions(
    administrator: Client, number: int, django_assert_num_queries: Assertion
) -> None:
    plan = make_migrations(number)
    with django_assert_num_queries(9):
        confirmation(administrator, plan)


@pytest.mark.parametrize("verb", ["start", "cancel", "delete"])
def test_dialog_begins_with_its_heading(administrator: Client, verb: str) -> None:
    where = reverse(f"plans:{verb}", args=[make_plan({"a": []}).uuid])
    text = administrator.get(where, headers={"hx-request": "true"}).content.decode()
    assert '<h2 id="dialog-title" tabindex="-1" autofocus>' in text
