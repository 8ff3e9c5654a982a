"""The filters, the sorting and the page size of the table of a plan's actions."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from actions.models import Action, ActionParent
from plans.models import ActionPlan
from tests.builders import make_node, make_plan, make_server, make_stack
from watcher_site.configuration.policies import ADMIN, EVENT_DETAILS


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def migration(plan: ActionPlan, name: str, **columns: Any) -> Action:
    """Make a migration of a new server; the name in its parameters may differ from that of the server."""
    server = make_server(columns.pop("called", name), project_id=columns.pop("project", ""))
    parameters = {
        "resource_id": str(server.uuid),
        "resource_name": name,
        "source_node": columns.pop("source", "compute1"),
        "destination_node": "compute9",
    }
    values = {"action_type": "migrate", "input_parameters": parameters, **columns}
    return Action.objects.create(action_plan=plan, **values)


@pytest.fixture
def plan(db: None) -> ActionPlan:
    """A plan whose actions differ from each other in one filter."""
    plan = make_plan()
    migration(plan, "web-1", source="compute1", project="shop")
    migration(plan, "db-1", source="compute2", called="database", state="SKIPPED", skipped_by="bob", reason="closing")
    node = make_node("compute7")
    Action.objects.create(
        action_plan=plan,
        action_type="change_nova_service_state",
        input_parameters={"resource_id": str(node.uuid), "state": "disabled"},
    )
    stack = make_stack("blog", project_id="press")
    Action.objects.create(
        action_plan=plan, action_type="nop", input_parameters={"message": "a", "resource_id": str(stack.uuid)}
    )
    ActionParent.objects.create(parent=plan.actions.earliest("pk"), child=plan.actions.latest("pk"))
    migration(make_plan(), "web-1 of another plan")
    return plan


def shown(client: Client, plan: ActionPlan, **query: Any) -> list[str]:
    """Return the type and the name of each action in the table."""
    response = client.get(reverse("plans:detail", args=[plan.uuid]), query)
    rows = response.context["table"].data
    return [f"{one.action_type} {one.input_parameters.get('resource_name', '')}".strip() for one in rows]


EXPECTED = [
    ({"server": "EB-1"}, ["migrate web-1"]),
    ({"server": "database"}, ["migrate db-1"]),
    ({"node": "compute2"}, ["migrate db-1"]),
    ({"node": "compute9"}, ["migrate web-1", "migrate db-1"]),
    ({"node": "compute7"}, ["change_nova_service_state"]),
    ({"action_type": "nop"}, ["nop"]),
    ({"project": "shop"}, ["migrate web-1"]),
    ({"project": "press"}, ["nop"]),
    ({"state": "SKIPPED"}, ["migrate db-1"]),
    ({"text": "closing"}, ["migrate db-1"]),
    ({"text": "service_state"}, ["change_nova_service_state"]),
    ({"layer": "2"}, ["nop"]),
    ({"server": "1", "state": "PENDING", "node": "compute9"}, ["migrate web-1"]),
    ({"sort": "-action_type"}, ["nop", "migrate db-1", "migrate web-1", "change_nova_service_state"]),
]


@pytest.mark.parametrize(("query", "expected"), EXPECTED)
def test_actions_of_a_plan_are_filtered_and_sorted(
    administrator: Client, plan: ActionPlan, query: dict[str, str], expected: list[str]
) -> None:
    assert shown(administrator, plan, **query) == expected


def test_actions_are_found_by_a_part_of_the_uuid_of_their_server(administrator: Client, plan: ActionPlan) -> None:
    uuid = plan.actions.earliest("pk").input_parameters["resource_id"]
    assert shown(administrator, plan, server=uuid[:8]) == ["migrate web-1"]


def test_action_is_found_by_a_prefix_of_its_uuid(administrator: Client, plan: ActionPlan) -> None:
    assert shown(administrator, plan, text=str(plan.actions.earliest("pk").uuid)[:8]) == ["migrate web-1"]


@pytest.mark.parametrize("query", [{"state": "GREEN"}, {"layer": "x"}, {"text": "\x00"}, {"action_type": "stop"}])
def test_invalid_filter_selects_no_actions_and_is_reported(
    administrator: Client, plan: ActionPlan, query: dict[str, str]
) -> None:
    response = administrator.get(reverse("plans:detail", args=[plan.uuid]), query)
    assert list(response.context["table"].data) == []
    assert "invalid-feedback" in response.content.decode()


def test_text_filter_does_not_search_messages_hidden_from_the_user(
    client: Client, stranger: User, settings: Settings
) -> None:
    plan = make_plan({"a": []})
    plan.actions.update(state="FAILED", status_message="Action failed in execute: no valid host")
    settings.POLICIES = {EVENT_DETAILS: ADMIN}
    stranger.user_permissions.set(Permission.objects.filter(codename__in=["view_actionplan", "view_action"]))
    client.force_login(stranger)
    assert shown(client, plan, text="valid host") == []


def test_pages_of_the_table_keep_the_filters(administrator: Client, plan: ActionPlan) -> None:
    url = f"{reverse('plans:detail', args=[plan.uuid])}?server=web&per_page=50"
    text = administrator.get(url).content.decode()
    assert f'hx-get="{url.replace("&", "&amp;")}"' in text
    assert "1 of 4 matches the filters" in text


@pytest.mark.parametrize(("size", "rows"), [("25", 25), ("50", 30), ("0", 30), ("1000000", 30), ("x", 30)])
def test_unavailable_page_size_is_replaced_by_the_default(administrator: Client, size: str, rows: int) -> None:
    plan = make_plan({str(number): [] for number in range(30)})
    response = administrator.get(reverse("plans:detail", args=[plan.uuid]), {"per_page": size})
    assert len(response.context["table"].paginated_rows) == rows


def test_page_size_of_zero_is_ignored_by_lists(administrator: Client, plan: ActionPlan) -> None:
    assert administrator.get(reverse("actions:list"), {"per_page": "0"}).status_code == 200


def test_filter_query_count_does_not_depend_on_the_number_of_actions(
    administrator: Client, plan: ActionPlan, django_assert_num_queries: Any
) -> None:
    url = reverse("plans:detail", args=[plan.uuid])
    query = {"text": "1", "server": "web", "node": "compute", "project": "shop", "layer": "1"}
    for number in range(3):
        migration(plan, f"web-1{number}", project="shop")
        administrator.get(url, query)  # The layers are cached.
        with django_assert_num_queries(15):
            administrator.get(url, query)
