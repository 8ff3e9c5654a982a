"""The console's list of history, its files, and the box on the page of each object."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils.html import strip_tags

from actions.exclusions.records import change_exclusion
from plans.models import ActionPlan
from plans.purging import remove_plans
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import make_cluster, make_plan, make_server
from watcher_site.history import record
from watcher_site.history.reading import details_in_words
from watcher_site.models import HistoryEntry
from watcher_site.request_context import CallingContext, on_behalf_of

pytestmark = pytest.mark.django_db
ROSA = CallingContext(user="rosa")


@pytest.fixture
def browser(cloud_admin: User) -> Client:
    client = Client()
    client.force_login(cloud_admin)
    return client


@pytest.fixture
def plan() -> ActionPlan:
    made = make_plan({"a": []})
    record("action.skip", made.actions.get(), caller=ROSA, within=made, message="=not <b>before</b> Sunday")
    return made


def text(response: Any) -> str:
    return str(response.content.decode())


def test_list_shows_user_event_and_message_with_links_to_existing_objects(browser: Client, plan: ActionPlan) -> None:
    page = text(browser.get(reverse("history:list")))
    assert "rosa" in page
    assert "Skip action" in page
    assert "&lt;b&gt;before" in page
    assert reverse("actions:detail", args=[plan.actions.get().uuid]) in page


def test_entries_of_removed_objects_have_no_links(browser: Client, plan: ActionPlan) -> None:
    action = plan.actions.get()
    record("action_plan.start", plan, caller=ROSA)
    sum(remove_plans(ActionPlan.objects.all(), [plan.pk]))
    response = browser.get(reverse("history:list"))
    assert (response.status_code, "Skip action" in text(response)) == (200, True)
    assert reverse("actions:detail", args=[action.uuid]) not in text(response)
    assert reverse("plans:detail", args=[plan.uuid]) not in text(response)
    assert browser.get(reverse("history:list"), {"object_uuid": str(plan.uuid)}).status_code == 200
    assert browser.get(reverse("plans:detail", args=[plan.uuid])).status_code == 404


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("user=rosa", True),
        ("user=bob", False),
        ("deed=action", True),
        ("deed=action.skip", True),
        ("deed=Action plan", False),
        ("outcome=refused", False),
        ("since=2100-01-01T00:00", False),
        ("text=SUNDAY", True),
        ("object=a name", False),
    ],
)
def test_list_is_filtered(browser: Client, plan: ActionPlan, query: str, shown: bool) -> None:
    assert ("Skip action" in text(browser.get(f"{reverse('history:list')}?{query}"))) is shown


def test_list_shows_changed_values(browser: Client) -> None:
    details = {
        "name": {"from": "web", "to": "shop"},
        "plan_only": False,
        "nodes": ["a", "b"],
        "image": None,
        "tags": {},
    }
    record("cluster.update", "web", caller=ROSA, details=details)
    page = text(browser.get(reverse("history:list")))
    shown = ("name: web → shop", "plan only: no", "nodes: a, b", "image:", "tags:")
    assert [words in page for words in shown] == [1, 1, 1, 0, 0]


def test_details_of_exclusions_are_readable() -> None:
    server = make_server("db")
    hours = {"opens": "08:00", "closes": "18:00", "weekdays": ["monday", "friday"]}
    changes = {"action_types": ["stop"], "window": None, "expires_at": "2999-01-01T00:00:00Z"}
    with on_behalf_of(lambda: ROSA):
        rule = make_exclusion(targets={"servers": ["db"]}, window=hours)
        change_exclusion(rule, changes, "rosa")
        change_exclusion(rule, {"action_types": [], "targets": {}}, "rosa")
    dash, named = "\N{EN DASH}", f"servers db ({server.uuid})"
    hours_said = f"08:00{dash}18:00, Monday, Friday"
    # The order of names depends on the database.
    details = [set(details_in_words(one.details).split("; ")) for one in HistoryEntry.objects.order_by("pk")]
    assert details == [
        {"name: frozen", "owner: alice", "action types: all", f"targets: {named}", "zone: UTC", "enabled: yes"}
        | {f"window: {hours_said}"},
        {"action types: all → stop", f"window: {hours_said} → every hour", "expires at: never → 2999-01-01 00:00 UTC"},
        {"action types: stop → all", f"targets: {named} → anything"},
    ]


def test_page_of_an_object_shows_the_events_of_its_parts(browser: Client, plan: ActionPlan) -> None:
    for page in (reverse("plans:detail", args=[plan.uuid]), reverse("actions:detail", args=[plan.actions.get().uuid])):
        assert "skip action" in text(browser.get(page))


def test_history_box_names_the_parts_of_the_object(browser: Client, plan: ActionPlan) -> None:
    action = plan.actions.get()
    record("action_plan.cancel", plan, caller=ROSA)
    box = text(browser.get(reverse("plans:detail", args=[plan.uuid]))).partition("history-heading")[2]
    assert f'href="{reverse("actions:detail", args=[action.uuid])}"' in box
    assert action.called in box
    box = text(browser.get(reverse("actions:detail", args=[action.uuid]))).partition('id="history-heading"')[2]
    assert f'href="{reverse("plans:detail", args=[plan.uuid])}"' in box.partition("logs-heading")[0]


def test_history_is_hidden_without_the_permission(stranger: User, reader: User) -> None:
    cluster = make_cluster("web")
    reader.groups.clear()
    reader.user_permissions.add(Permission.objects.get(codename="view_cluster"))
    client = Client()
    client.force_login(reader)
    assert client.get(reverse("history:list")).status_code == 403
    assert client.get(reverse("history:export", args=["csv"])).status_code == 403
    assert "history-heading" not in text(client.get(reverse("clusters:detail", args=[cluster.uuid])))


def test_export_has_the_filters_of_the_list(browser: Client, plan: ActionPlan) -> None:
    record("user.login", "bob", caller=ROSA)
    answer = browser.get(f"{reverse('history:export', args=['csv'])}?deed=action.skip&page=2")
    lines = b"".join(answer.streaming_content).decode().splitlines()
    assert len(lines) == 2
    assert "'=not <b>before</b> Sunday" in lines[1]
    assert "attachment" in answer["Content-Disposition"]


def test_invalid_filter_exports_nothing(browser: Client) -> None:
    answer = browser.get(f"{reverse('history:export', args=['csv'])}?since=yesterday", follow=True)
    assert "Cannot export" in text(answer)


def test_list_query_count_does_not_depend_on_the_number_of_entries(
    browser: Client, django_assert_max_num_queries: Any
) -> None:
    clusters = [make_cluster(f"web-{number}") for number in range(30)]
    for cluster in clusters:
        record("cluster.check", cluster, caller=ROSA)
    with django_assert_max_num_queries(14):
        assert text(browser.get(reverse("history:list"))).count("Check cluster") == len(clusters)
    assert HistoryEntry.objects.count() == len(clusters)


@pytest.mark.parametrize("event", ["action_plan.signal", "action_plan.cancel"])
def test_page_of_an_action_shows_the_signals_to_its_plan(browser: Client, event: str) -> None:
    plan = make_plan({"a": []})
    record(event, plan, caller=ROSA)
    page = text(browser.get(reverse("actions:detail", args=[plan.actions.get().uuid])))
    assert ("rosa" in page, "No entries yet." in page) == (True, False)


def test_page_of_an_action_shows_no_other_events_of_its_plan(browser: Client) -> None:
    plan = make_plan({"a": []})
    record("action_plan.start", plan, caller=ROSA)
    assert "rosa" not in text(browser.get(reverse("actions:detail", args=[plan.actions.get().uuid])))


def test_objects_in_details_and_messages_are_links(browser: Client, plan: ActionPlan) -> None:
    other = make_plan({"b": []})
    server = make_server("db-7")
    record(
        "action_plan.continue",
        plan,
        caller=ROSA,
        details={"action_plan": other.uuid},
        message=f"Server {server.uuid}, unlike {'0' * 8}-0000-4000-8000-{'0' * 12}",
    )
    page = text(browser.get(reverse("history:list")))
    assert f'action plan: <a href="{reverse("plans:detail", args=[other.uuid])}"' in page
    assert f'Server <a href="{reverse("cluster:server", args=[server.uuid])}"' in page
    assert "unlike 00000000 " in page


def test_entry_without_details_has_an_empty_cell(browser: Client) -> None:
    HistoryEntry.objects.create(user="rosa", deed="cluster.check", message="It was refused.")
    HistoryEntry.objects.create(user="rosa", deed="cluster.check")
    assert '<td class="message" data-label="Details"></td>' in text(browser.get(reverse("history:list")))


@pytest.mark.parametrize("page", ["cluster:servers", "cluster:nodes"])
def test_state_filter_is_labelled_in_the_language_of_the_user(browser: Client, page: str) -> None:
    shown = text(browser.get(reverse(page), headers={"Accept-Language": "de"}))
    assert "Zustand" in shown.partition('for="id_state"')[2].partition("</label>")[0]


def test_refusal_of_a_command_names_its_object_once(browser: Client, plan: ActionPlan) -> None:
    action = plan.actions.get()
    message = f"action {action.uuid} ({action.called}) is SKIPPED, and cannot be skipped."
    record("command.actions", None, caller=ROSA, outcome="refused", message=message)
    page = strip_tags(text(browser.get(reverse("history:list"), {"deed": "command.actions"})))
    assert f"action {action.called} is SKIPPED, and cannot be skipped." in page
