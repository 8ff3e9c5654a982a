"""The console for all who use it: by keyboard, by screen reader, on a phone, and with motion switched off."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from actions.models import Action
from plans.models import ActionPlan
from tests.builders import make_aggregate, make_audit, make_node, make_plan, make_server
from tests.end_to_end.console.browser import browser_page
from tests.watcher_site.notifications.relaying import make_undelivered, subscribe_to
from watcher_site.accounts.projects import add_member
from watcher_site.accounts.tokens import make_token

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# What a person can operate, and has no name: neither a label, nor words of its own, nor a title.
NAMELESS = """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a[href]")]
  .filter((one) => one.checkVisibility() && !(one.labels?.length || one.getAttribute("aria-label") ||
    one.textContent.trim() || one.title)).map((one) => one.outerHTML)"""
LOOK = """(one) => {
  const { outlineStyle, boxShadow, strokeWidth } = getComputedStyle(one);
  return [outlineStyle, boxShadow, strokeWidth];
}"""
WIDTH = "() => document.documentElement.scrollWidth"


@pytest.fixture
def plan(transactional_db: None) -> ActionPlan:
    node = make_node("compute1", zone="hall-a")
    make_aggregate(1, "standard", node)
    make_server("web-1", node)
    audit = make_audit("vm_workload_consolidation-2026-11-21T12:10:30.420311", state="SUCCEEDED")
    plan = make_plan({str(number): [str(number - 1)] if number else [] for number in range(12)}, audit=audit)
    Action.objects.filter(input_parameters__message="3").update(
        state="SKIPPED", skipped_by="bob", status_message="Action skipped by user. Reason: " + "long words " * 18
    )
    return plan


@pytest.fixture
def session(cloud_admin: User, client: Client, live_server: Any) -> dict[str, str]:
    client.force_login(cloud_admin)
    return {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live_server.url}


@pytest.fixture(params=[390, 1400])
def page(request: Any, plan: ActionPlan, session: dict[str, str], live_server: Any) -> Iterator[Page]:
    viewport = {"width": request.param, "height": 900}
    with browser_page(base_url=live_server.url, viewport=viewport, reduced_motion="reduce") as page:
        page.context.add_cookies([session])
        yield page


def aside(work: Callable[[], Any]) -> Any:
    """Ask or change the database: the browser's thread must not."""
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(work).result()
        pool.submit(connections.close_all).result()
    return result


@pytest.fixture
def addresses(plan: ActionPlan, cloud_admin: User) -> list[str]:
    add_member("alice", "77c0e5a1d8")
    make_token(cloud_admin, name="a name of many words, which takes more than one line", group="cloud-admin")
    lists = (
        "home",
        "audits:list",
        "audits:waiting",
        "plans:list",
        "actions:list",
        "cluster:nodes",
        "cluster:servers",
        "cluster:members",
        "cluster:profiles",
        "cluster:policies",
        "cluster:new-policy",
        "clusters:list",
        "clusters:create",
        "account:page",
        "account:new-token",
        "account:password",
        "users:list",
        "users:new",
        "documentation",
    )
    return [
        *map(reverse, lists),
        f"{reverse('audits:create')}?goal=hardware_maintenance",
        reverse("plans:detail", args=[plan.uuid]),
        reverse("actions:detail", args=[plan.actions.first().uuid]),
        reverse("audits:detail", args=[plan.audit.uuid]),
        reverse("users:detail", args=[cloud_admin.pk]),
    ]


def test_every_control_has_a_name_and_no_page_is_wider_than_the_screen(addresses: list[str], page: Page) -> None:
    for address in addresses:
        page.goto(address)
        assert page.evaluate(NAMELESS) == [], address
        assert page.evaluate(WIDTH) <= page.viewport_size["width"], address
    assert page.complaints == []


def test_actions_are_selected_and_skipped_by_keyboard_alone(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    # A page behind another has no focus to show.
    page.bring_to_front()
    page.get_by_label("Select all").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Skip 11 selected")).to_be_enabled()
    page.get_by_role("button", name="Skip 11 selected").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    # htmx sets the focus once more when it has settled the dialog.
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added")).to_have_count(0)
    page.keyboard.type("audit week")
    page.keyboard.press("Tab")
    expect(page.get_by_role("dialog").get_by_role("button", name="Skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("11 actions skipped.")).to_be_visible()
    assert aside(plan.actions.filter(state="SKIPPED").count) == 12


def test_the_navigation_marks_the_present_page(session: dict[str, str], live_server: Any) -> None:
    marked = {"home": "Overview", "audits:waiting": "Servers", "users:list": "alice", "plans:list": "Plans"}
    with browser_page(base_url=live_server.url, viewport={"width": 1400, "height": 900}) as page:
        page.context.add_cookies([session])
        for name, link in marked.items():
            page.goto(reverse(name))
            expect(page.locator(".navbar [aria-current=page]")).to_have_text(link)


def test_what_has_the_focus_is_seen(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    for locator in (page.get_by_role("button", name="Start"), page.locator(".box").first):
        locator.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        shape = locator.locator(".outline") if locator.locator(".outline").count() else locator
        outline, shadow, stroke = shape.evaluate(LOOK)
        assert outline != "none" or shadow != "none" or stroke == "2px"


def test_a_graph_that_goes_on_says_so(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    expect(page.get_by_text("scroll sideways for more")).to_be_visible()


def test_nothing_moves_for_users_who_prefer_reduced_motion(page: Page, plan: ActionPlan) -> None:
    aside(lambda: ActionPlan.objects.update(state="ONGOING"))
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    badge = page.locator("h1 .state-ongoing")
    assert badge.evaluate("(one) => getComputedStyle(one, '::before').animationName") == "none"


def test_the_banner_of_a_step_goes_when_the_next_one_is_made(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("Action plan started. An applier will run it.")).to_be_visible()
    aside(lambda: ActionPlan.objects.update(state="ONGOING"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("ONGOING")
    expect(page.get_by_text("Action plan started. An applier will run it.")).to_have_count(0)


@pytest.fixture
def undelivered(transactional_db: None) -> None:
    make_undelivered(subscribe_to(f"http://192.0.2.7/{'x' * 1900}", "n" * 255))


def test_notifications_are_within_reach_on_screens_of_every_width(
    undelivered: None, session: dict[str, str], live_server: Any
) -> None:
    with browser_page(base_url=live_server.url) as page:
        page.context.add_cookies([session])
        for width in (800, 992, 1210):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(reverse("notifications:list"))
            assert page.locator("tbody tr").bounding_box()["height"] < 100
            page.goto(reverse("notifications:undelivered"))
            expect(page.get_by_role("button", name="Send again")).to_be_in_viewport(ratio=1)
            assert page.evaluate(WIDTH) == width
