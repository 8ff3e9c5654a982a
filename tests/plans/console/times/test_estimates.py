"""The estimated time left of a running plan."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import Action
from plans.console.times.estimates import estimate_time_left
from plans.models import ActionPlan
from tests.builders import make_plan

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def past() -> None:
    """Past nop actions with a median duration of 10 minutes, and one that failed immediately."""
    cache.clear()
    plan = make_plan({name: [] for name in "abcd"}, state="SUCCEEDED")
    for minutes, action in zip((9, 10, 60, 0), plan.actions.order_by("pk"), strict=True):
        end = NOW - timedelta(days=1)
        state = "SUCCEEDED" if minutes else "FAILED"
        Action.objects.filter(pk=action.pk).update(
            state=state, start_time=end - timedelta(minutes=minutes), end_time=end
        )


def running(graph: dict[str, list[str]], *begun: str, **columns: object) -> ActionPlan:
    """Make a plan in which these actions began 4 minutes ago."""
    start = NOW - timedelta(minutes=4)
    plan = make_plan(graph, **{"state": "ONGOING", "start_time": start, **columns})
    plan.actions.filter(input_parameters__message__in=begun).update(state="ONGOING", attempt=1, start_time=start)
    return plan


def minutes_left(plan: ActionPlan) -> float | None:
    left = estimate_time_left(plan, NOW)
    return left and left.total_seconds() / 60


def test_estimate_adds_the_median_durations_of_a_chain(past: None) -> None:
    assert minutes_left(running({"a": [], "b": ["a"], "c": ["b"], "d": []}, "a", "d")) == 26


def test_estimate_divides_independent_actions_among_the_running_processes(past: None) -> None:
    assert minutes_left(running({name: [] for name in "abcdef"}, "a", "b")) == 26


def test_estimate_requires_past_actions_of_each_type(past: None) -> None:
    plan = running({"a": [], "b": []}, "a")
    plan.actions.filter(state="PENDING").update(action_type="sleep")
    assert minutes_left(plan) is None


@pytest.mark.parametrize("columns", [{"state": "PENDING"}, {"suspended_by": "rosa"}, {"state": "CANCELLING"}])
def test_pending_suspended_or_cancelling_plan_has_no_estimate(past: None, columns: dict[str, str]) -> None:
    assert minutes_left(running({"a": []}, "a", **columns)) is None


def test_plan_page_shows_the_time_left(past: None, client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = running({"a": [], "b": ["a"]}, "a")
    plan.actions.filter(state="ONGOING").update(start_time=timezone.now() - timedelta(minutes=4))
    assert "about 16 minutes left" in client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
