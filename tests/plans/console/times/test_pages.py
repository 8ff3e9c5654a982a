"""Start, end, duration and starting user on the pages of plans and actions."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import Action, ActionEvent
from plans.models import ActionPlan
from tests.builders import action, make_audit, make_plan
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def plan() -> ActionPlan:
    """A plan that ran for 200 seconds, with one action that succeeded with its second attempt, after 42 seconds."""
    plan = make_plan(
        {"a": [], "b": ["a"]},
        state="SUCCEEDED",
        started_by="rosa",
        start_time=NOW - timedelta(seconds=800),
        end_time=NOW - timedelta(seconds=600),
    )
    a, start = action(plan, "a"), NOW - timedelta(seconds=700)
    Action.objects.filter(pk=a.pk).update(
        state="SUCCEEDED", attempt=2, retries=1, start_time=start, end_time=start + timedelta(seconds=42)
    )
    for attempt, result in ((1, "Retry"), (2, "Success")):
        began = start - timedelta(seconds=90 if attempt == 1 else 0)
        finish = began + timedelta(seconds=42)
        ActionEvent.objects.create(
            action=a, event="execute", attempt=attempt, start_time=began, finish_time=finish, result=result
        )
    return plan


def text(client: Client, name: str, *arguments: object) -> str:
    return " ".join(client.get(reverse(name, args=arguments)).content.decode().split())


def test_plan_page_shows_times_duration_and_the_user_who_started_it(browser: Client, plan: ActionPlan) -> None:
    shown = text(browser, "plans:detail", plan.uuid)
    for words in ("by <bdi>rosa</bdi>", "3 min 20 s", "Ended", "42 s", "1 retry"):
        assert words in shown


def test_plan_page_shows_the_suspended_duration(browser: Client, plan: ActionPlan) -> None:
    ActionPlan.objects.filter(pk=plan.pk).update(signals=2)
    for signal, seconds in (("SUSPEND", 700), ("RESUME", 640)):
        HistoryEntry.objects.create(
            deed="action_plan.signal",
            object_uuid=plan.uuid,
            details={"signal": signal},
            created_at=NOW - timedelta(seconds=seconds),
        )
    assert "1 min 0 s of it suspended" in text(browser, "plans:detail", plan.uuid)


@pytest.mark.parametrize(("state", "updates"), [("ONGOING", True), ("SUCCEEDED", False)])
def test_timeline_of_a_running_plan_shows_a_notice_without_javascript(
    browser: Client, plan: ActionPlan, state: str, updates: bool
) -> None:
    ActionPlan.objects.update(state=state)
    assert (
        "Without JavaScript this page does not update itself." in text(browser, "plans:timeline", plan.uuid)
    ) is updates


def test_timeline_of_a_plan_that_was_not_started_shows_no_times(browser: Client) -> None:
    page = browser.get(reverse("plans:timeline", args=[make_plan().uuid])).content.decode()
    assert 'class="card facts"' not in page


def test_timeline_links_to_its_plan_by_name_and_not_to_itself(browser: Client) -> None:
    plan = make_plan(audit=make_audit("Tonight"), state="SUCCEEDED", start_time=NOW, end_time=NOW)
    shown = text(browser, "plans:timeline", plan.uuid)
    to_itself = f'href="{reverse("plans:timeline", args=[plan.uuid])}"'
    assert ("Tonight</bdi></a>" in shown, to_itself in shown) == (True, False)


def test_plan_list_shows_duration_and_the_user_who_started_each_plan(browser: Client, plan: ActionPlan) -> None:
    shown = text(browser, "plans:list")
    for words in ("by rosa", "took 3 min 20 s"):
        assert words in shown


def test_ended_plan_without_an_end_time_is_not_shown_as_running(browser: Client, plan: ActionPlan) -> None:
    ActionPlan.objects.update(end_time=None)
    assert "running for" not in text(browser, "plans:list")


@pytest.mark.parametrize("column", ["start_time", "end_time"])
def test_plan_list_is_sorted_by_its_times(browser: Client, plan: ActionPlan, column: str) -> None:
    never = make_plan()
    rows = browser.get(reverse("plans:list"), {"sort": f"-{column}"}).context["table"].rows
    assert [row.record.pk for row in rows] == [plan.pk, never.pk]


def test_action_page_shows_its_attempts(browser: Client, plan: ActionPlan) -> None:
    shown = text(browser, "actions:detail", action(plan, "a").uuid)
    for words in (
        "by <bdi>rosa</bdi>, with the plan",
        "42 s",
        "Attempts",
        "the first <time",
        "1 time",
        "for 48 s in total",
    ):
        assert words in shown


def test_action_that_failed_before_it_began_is_not_shown_as_executed(browser: Client) -> None:
    plan = make_plan({"a": []}, state="FAILED")
    a = action(plan, "a")
    Action.objects.filter(pk=a.pk).update(state="FAILED", attempt=0)
    for name, result in (("pre_condition", "Error"), ("post_condition", "Success")):
        ActionEvent.objects.create(action=a, event=name, finish_time=NOW, result=result)
    for page in (text(browser, "actions:detail", a.uuid), text(browser, "plans:detail", plan.uuid)):
        assert page.count("the action itself was not executed") == 1
        assert "result-success" not in page


def test_migration_shows_the_node_chosen_by_the_cloud(browser: Client) -> None:
    plan = make_plan(state="SUCCEEDED")
    migration = Action.objects.create(
        action_plan=plan,
        action_type="migrate",
        input_parameters={"resource_name": "wiki", "migration_type": "live", "source_node": "compute-03"},
        outputs={"destination_node": "compute-05"},
    )
    assert "<bdi>live</bdi> · <bdi>compute-03</bdi> → <bdi>compute-05</bdi>" in text(
        browser, "plans:detail", plan.uuid
    )
    assert "<dd> compute-05 </dd>" in text(browser, "actions:detail", migration.uuid)
