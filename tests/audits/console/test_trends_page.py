"""The page of trends: charts over time, and the capacity in use."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import make_aggregate, make_node, make_plan, make_server

pytestmark = pytest.mark.django_db


def trends(client: Client, person: User, **query: str) -> Any:
    client.force_login(person)
    return client.get(reverse("trends"), query)


def chart(response: Any, name: str) -> dict[str, Any]:
    """Return the data of a chart: the values of each series by its label, without days without a value."""
    data = next(json.loads(one.data) for one in response.context["charts"] if one.name == name)
    return {one["label"]: [value for value in one["values"] if value] for one in data["series"]}


def ended_plan(state: str = "SUCCEEDED", *, days: int = 0, minutes: int = 10, **columns: Any) -> ActionPlan:
    end = timezone.now() - timedelta(days=days)
    start = end - timedelta(minutes=minutes)
    return make_plan({"a": [], "b": []}, state=state, start_time=start, end_time=end, **columns)


def test_plans_are_counted_by_state_on_the_day_of_their_end(client: Client, cloud_admin: User) -> None:
    for state, days in (("SUCCEEDED", 1), ("SUCCEEDED", 1), ("SUCCEEDED", 3), ("FAILED", 1)):
        ended_plan(state, days=days)
    make_plan(state="ONGOING")
    assert chart(trends(client, cloud_admin), "plans") == {"SUCCEEDED": [1, 2], "FAILED": [1]}


def test_plan_durations_are_the_average_and_maximum_of_a_day(client: Client, cloud_admin: User) -> None:
    ended_plan(minutes=10)
    ended_plan("FAILED", minutes=30)
    assert chart(trends(client, cloud_admin), "plan-durations") == {"average": [20], "longest": [30]}


def test_actions_are_counted_by_state_with_their_durations(client: Client, cloud_admin: User) -> None:
    plan, now = ended_plan(), timezone.now()
    Action.objects.filter(input_parameters__message="a").update(
        state="SUCCEEDED", updated_at=now, start_time=now - timedelta(seconds=40), end_time=now
    )
    plan.actions.filter(input_parameters__message="b").update(state="SKIPPED", updated_at=now)
    response = trends(client, cloud_admin)
    assert chart(response, "actions") == {"SUCCEEDED": [1], "SKIPPED": [1]}
    assert chart(response, "action-durations") == {"average": [40], "longest": [40]}


def test_reached_efficacy_is_the_share_of_succeeded_actions(client: Client, cloud_admin: User) -> None:
    efficacy = [{"name": "released_nodes_ratio", "description": "", "unit": "%", "value": 30.0}]
    plan = ended_plan(global_efficacy=efficacy)
    plan.actions.filter(input_parameters__message="a").update(state="SUCCEEDED")
    ended_plan(global_efficacy=[])
    response = trends(client, cloud_admin)
    assert list(chart(response, "efficacy").values()) == [[30], [15]]
    assert "Released nodes ratio (%)" in response.content.decode()


@pytest.mark.parametrize(("days", "shown"), [("7", 7), ("90", 90), ("12", 30), ("", 30), ("x\0", 30)])
def test_period_is_7_30_or_90_days(client: Client, cloud_admin: User, days: str, shown: int) -> None:
    for past in (1, 20, 80):
        ended_plan(days=past)
    response = trends(client, cloud_admin, days=days)
    assert len(response.context["charts"][0].days) == shown
    assert sum(chart(response, "plans")["SUCCEEDED"]) == {7: 1, 30: 2, 90: 3}[shown]


def test_period_without_plans_shows_a_text_and_no_charts(client: Client, cloud_admin: User) -> None:
    text = trends(client, cloud_admin).content.decode()
    assert text.count("No plans in this period.") == 2
    assert text.count("No plans with an efficacy in this period.") == 1
    assert "<canvas" not in text


def test_every_chart_has_a_table_with_the_same_values(client: Client, cloud_admin: User) -> None:
    plan = ended_plan(minutes=10)
    text = trends(client, cloud_admin).content.decode()
    assert text.count("<canvas") == text.count('<details class="chart-table">') == 2
    day = plan.end_time.date().isoformat()
    assert f'<th scope="row" class="text-nowrap">{day}</th><td class="text-end number">1</td>' in text


def test_capacity_is_shown_by_aggregate_with_the_fullest_node_first(client: Client, cloud_admin: User) -> None:
    empty, full, _alone = (make_node(name, vcpus=4, memory=4096) for name in ("a-empty", "b-full", "c-alone"))
    make_aggregate(1, "fast", empty, full)
    make_server("web", full, vcpus=5, memory=1024)
    fast, rest = trends(client, cloud_admin).context["capacity"]["groups"]
    assert [node.hostname for node in fast.nodes] == ["b-full", "a-empty"]
    assert (fast.vcpus.text, fast.memory.text) == ("5 / 8 vCPU", "1 / 8 GB")
    assert (fast.nodes[0].vcpus.level, fast.nodes[0].memory.level) == ("over", "1")
    assert (rest.name, rest.nodes[0].hostname) == ("No aggregate", "c-alone")


def test_nodes_over_the_display_limit_are_counted(client: Client, cloud_admin: User, monkeypatch: Any) -> None:
    monkeypatch.setattr("cluster.console.heat_map.SHOWN_NODES", 2)
    for number in range(3):
        make_node(f"node-{number}")
    assert "1 more node" in trends(client, cloud_admin).content.decode()


def test_pending_servers_are_counted(client: Client, cloud_admin: User) -> None:
    make_server("waiting", state="pending")
    assert "1 server is waiting for capacity" in trends(client, cloud_admin).content.decode()


def test_absence_of_pending_servers_is_stated_as_on_their_list(client: Client, cloud_admin: User) -> None:
    make_node()
    pages = [trends(client, cloud_admin), client.get(reverse("audits:waiting"))]
    assert ["No servers are waiting for capacity." in page.content.decode() for page in pages] == [True, True]


def test_user_without_permissions_sees_neither_charts_nor_capacity(client: Client, stranger: User) -> None:
    ended_plan()
    text = trends(client, stranger).content.decode()
    assert "Your account has no permission to view action plans or compute nodes." in text
    assert "<canvas" not in text


def test_trends_query_count_does_not_depend_on_the_number_of_records(
    client: Client, cloud_admin: User, django_assert_num_queries: Any
) -> None:
    make_aggregate(1, "fast", make_node())
    trends(client, cloud_admin)
    cache.clear()
    with django_assert_num_queries(9):
        client.get(reverse("trends"))
    make_aggregate(2, "slow", *(make_node(f"node-{number}") for number in range(3)))
    for state in ("SUCCEEDED", "FAILED"):
        ended_plan(state, global_efficacy=[{"name": "ratio", "unit": "%", "value": 1}])
    with django_assert_num_queries(9):
        client.get(reverse("trends"), {"days": "90"})


def test_only_pages_with_charts_load_the_chart_library(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    for page, is_loaded in (("home", True), ("trends", True), ("plans:list", False)):
        assert ("chart.umd.min" in client.get(reverse(page)).content.decode()) == is_loaded


def test_charts_are_cached_for_each_period(client: Client, cloud_admin: User) -> None:
    ended_plan()
    assert chart(trends(client, cloud_admin), "plans") == {"SUCCEEDED": [1]}
    ended_plan()
    response = trends(client, cloud_admin)
    assert chart(response, "plans") == {"SUCCEEDED": [1]}
    assert "Charts updated <time" in response.content.decode()
    assert chart(trends(client, cloud_admin, days="7"), "plans") == {"SUCCEEDED": [2]}


def test_cached_charts_are_hidden_without_the_permission(client: Client, cloud_admin: User) -> None:
    ended_plan()
    trends(client, cloud_admin)
    assert trends(client, User.objects.create_user("guest")).context.get("charts") is None
