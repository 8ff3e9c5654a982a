"""Lists with names as long as the tables allow: no list is wider than a window of 1400 pixels."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page

from actions.models import Action, ActionEvent, ActionParent
from plans.models import ActionPlan
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import (
    make_aggregate,
    make_audit,
    make_cluster,
    make_flavor,
    make_member,
    make_node,
    make_plan,
    make_pool,
    make_profile,
    make_server,
    make_stack,
    make_volume,
)
from tests.end_to_end.console.browser import browser_page
from tests.watcher_site.notifications.relaying import subscribe_to

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

LONG = "x" * 255
LISTS = [
    *("audits:list", "plans:list", "actions:list", "exclusions:list", "clusters:list", "stacks:list"),
    *("cluster:nodes", "cluster:servers", "cluster:pools", "cluster:volumes", "cluster:members", "cluster:profiles"),
    "notifications:list",
]
# The elements that scroll horizontally, with the widths of their content and of their container.
WIDER = """() => [document.documentElement, ...document.querySelectorAll(".table-responsive, .table-container")]
  .filter((part) => part.scrollWidth > part.clientWidth).map((part) => [part.scrollWidth, part.clientWidth])"""
# Cells whose text overlaps the next cells, and events that are wider than their list.
OVERLAPPING = """() => [...document.querySelectorAll("td, .events li")]
  .filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
  .map((cell) => [cell.className, cell.scrollWidth, cell.clientWidth])"""


@pytest.fixture
def rows(transactional_db: None) -> ActionPlan:
    make_flavor("small")
    node = make_node(LONG, zone=LONG[:255])
    make_aggregate(1, LONG, node)
    server = make_server(LONG, node, unhealthy_reason=LONG, project_id=LONG)
    profile = make_profile(LONG)
    cluster = make_cluster(LONG, profile=profile, project_id=LONG, status_reason=LONG)
    make_member(LONG, server=server, cluster=cluster, profile=profile, status_reason=LONG)
    make_stack(LONG, project_id=LONG)
    make_volume(LONG, make_pool(LONG))
    make_exclusion(LONG[:100], reason=LONG[:200])
    plan = make_plan(audit=make_audit(LONG[:63]), status_message=LONG)
    parameters = {
        "resource_id": str(server.uuid),
        "resource_name": LONG,
        "source_node": LONG,
        "migration_type": "live",
    }
    first = Action.objects.create(
        action_plan=plan, action_type="migrate", input_parameters=parameters, status_message=LONG
    )
    ActionEvent.objects.create(action=first, event="execute", details=LONG)
    host = f"compute-{'x' * 20}.example.org"
    parameters |= {"resource_name": "xxxxxxxxxxxx", "source_node": host, "destination_node": host}
    second = Action.objects.create(action_plan=plan, action_type="migrate", input_parameters=parameters)
    ActionParent.objects.create(child=second, parent=first)
    subscribe_to(f"http://192.0.2.7/{LONG}", LONG, event_types=["x" * 60] * 2)
    return plan


@pytest.fixture
def plan(rows: ActionPlan) -> str:
    """The address of the plan."""
    return reverse("plans:detail", args=[rows.uuid])


@pytest.fixture
def page(rows: ActionPlan, cloud_admin: User, client: Client, live_server: Any) -> Iterator[Page]:
    client.force_login(cloud_admin)
    with browser_page(base_url=live_server.url, viewport={"width": 1400, "height": 900}) as page:
        session = client.cookies["sessionid"].value
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        yield page


def test_lists_with_long_names_do_not_scroll_horizontally(page: Page, plan: str) -> None:
    found = {}
    for address in [*map(reverse, LISTS), plan]:
        page.goto(address)
        assert "xxxxxxxxxx" in page.locator("table").inner_text(), address
        found[address] = page.evaluate(WIDER) + page.evaluate(OVERLAPPING)
    assert {address: wider for address, wider in found.items() if wider} == {}
