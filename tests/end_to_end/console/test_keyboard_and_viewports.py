"""The console with a keyboard, on narrow and wide screens, without scripts, in print and with reduced motion."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from playwright.sync_api import Page, expect

from actions.models import Action
from cluster.models import Server
from plans.models import ActionPlan
from tests.builders import make_aggregate, make_audit, make_node, make_plan, make_server
from tests.end_to_end.console.browser import browser_page
from tests.watcher_site.notifications.relaying import make_undelivered, subscribe_to

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

# The focused element, and the width of its outline.
FOCUS = """() => {
  const focused = document.activeElement;
  const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(focused);
  const ring = outlineStyle === "none" || outlineColor.endsWith(" 0)") ? "0" : outlineWidth;
  const box = focused.matches(".box") && focused.querySelector(".outline");
  return [focused.outerHTML.slice(0, 150), parseFloat(box ? getComputedStyle(box).strokeWidth : ring)];
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


def in_another_thread(work: Callable[[], Any]) -> Any:
    """Read or change the database in another thread, since Django refuses it in the thread of the browser."""
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(work).result()
        pool.submit(connections.close_all).result()
    return result


def test_actions_are_selected_and_skipped_with_the_keyboard(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    # A page in the background has no focus.
    page.bring_to_front()
    page.get_by_label("Select all").focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Skip 11 selected")).to_be_enabled()
    page.get_by_role("button", name="Skip 11 selected").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    # htmx sets the focus again when it has settled the dialog.
    expect(page.locator(".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added")).to_have_count(0)
    page.keyboard.type("audit week")
    page.keyboard.press("Tab")
    expect(page.get_by_role("dialog").get_by_role("button", name="Skip", exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_text("11 actions skipped.")).to_be_visible()
    assert in_another_thread(plan.actions.filter(state="SKIPPED").count) == 12
    expect(page.locator("tr:focus, #messages:focus")).to_be_visible()


def test_menu_of_narrow_screens_opens_without_scripts(session: dict[str, str], live_server: Any) -> None:
    with browser_page(
        base_url=live_server.url, viewport={"width": 390, "height": 900}, java_script_enabled=False
    ) as page:
        page.context.add_cookies([session])
        page.goto(reverse("plans:list"))
        page.get_by_text("Menu", exact=True).click()
        expect(page.locator(".menu [aria-current=page]")).to_be_in_viewport()
        page.get_by_role("link", name="Stacks").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Stacks")


@pytest.mark.parametrize("page", [1400], indirect=True)
def test_focused_element_has_a_visible_outline(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    rings = {}
    for _ in range(60):
        page.keyboard.press("Tab")
        focused, width = page.evaluate(FOCUS)
        rings[focused] = width
    assert len(rings) > 30
    assert {focused for focused, width in rings.items() if width < 2} == set()


@pytest.mark.parametrize("page", [1400], indirect=True)
def test_focus_returns_after_a_dialog_and_deletion_of_the_plan_is_shown(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    page.bring_to_front()
    page.locator("#schedule").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    in_another_thread(lambda: ActionPlan.objects.update(updated_at=now()))
    with page.expect_response(lambda response: response.status == 200 and "hx-request" in response.request.headers):
        page.evaluate("htmx.trigger('[data-follows]', 'every')")
    page.keyboard.press("Escape")
    expect(page.locator("#schedule")).to_be_focused()
    in_another_thread(lambda: ActionPlan.objects.get().remove())
    page.evaluate("htmx.trigger('[data-follows]', 'every')")
    expect(page.get_by_role("alert")).to_have_text("This action plan was deleted.")
    requests: list[object] = []
    page.on("request", lambda request: requests.append(request))
    page.evaluate("htmx.trigger('[data-follows]', 'every')")
    expect(page.locator("#schedule")).to_be_focused()
    assert requests == []


@pytest.mark.parametrize("page", [1400], indirect=True)
def test_keyboard_shortcuts_work_outside_of_fields_until_they_are_disabled(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("home"))
    page.bring_to_front()
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page).to_have_url(re.compile(f"{reverse('plans:list')}$"))
    page.keyboard.press("j")
    expect(page.locator("tbody tr a:focus")).to_have_count(1)
    page.keyboard.press("/")
    page.keyboard.type("gp?")
    help = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(page.get_by_role("searchbox", name="Search all objects")).to_have_value("gp?")
    expect(help).to_be_hidden()
    page.get_by_role("heading", level=1).click()
    page.keyboard.press("?")
    help.get_by_label("Use keyboard shortcuts in this browser").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(help).to_be_hidden()
    page.get_by_role("button", name="Shortcuts").click()
    expect(help).to_be_visible()


@pytest.mark.parametrize("page", [1400], indirect=True)
def test_navigation_links_have_equal_positions_on_all_pages(page: Page, plan: ActionPlan) -> None:
    places = "() => [...document.querySelectorAll('nav .wide-screen a')].map((one) => one.getBoundingClientRect().x)"
    found = []
    for name in ("home", "plans:list", "cluster:nodes", "users:list"):
        page.goto(reverse(name))
        found.append(page.evaluate(places))
    assert len(found[0]) > 10
    assert found == [found[0]] * 4


@pytest.mark.parametrize("page", [1400], indirect=True)
def test_printed_page_uses_light_state_colours_in_dark_mode(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    tones = "() => [...document.querySelectorAll('.facts .bar rect')].map((one) => getComputedStyle(one).fill)"
    page.evaluate("document.documentElement.setAttribute('data-bs-theme', 'light')")
    light = page.evaluate(tones)
    page.evaluate("document.documentElement.setAttribute('data-bs-theme', 'dark')")
    page.emulate_media(media="print")
    assert len(set(light)) == 2
    assert page.evaluate(tones) == light


def test_objects_are_searched_with_the_keyboard(page: Page, plan: ActionPlan) -> None:
    server = in_another_thread(lambda: Server.objects.get())
    page.goto(reverse("plans:list"))
    page.bring_to_front()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search all objects")).to_be_focused()
    page.keyboard.type("web-1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Results for web-1"))
    page.get_by_role("link", name="web-1").click()
    expect(page).to_have_url(re.compile(f"{reverse('cluster:server', args=[server.uuid])}$"))
    assert page.evaluate(WIDTH) == page.viewport_size["width"]


@pytest.mark.parametrize("page", [390], indirect=True)
def test_list_is_sorted_on_a_phone(page: Page, plan: ActionPlan) -> None:
    in_another_thread(lambda: make_server("a-server"))
    page.goto(reverse("cluster:servers"))
    page.get_by_label("Sort by").select_option("Name, descending")
    page.get_by_role("button", name="Sort").click()
    expect(page.locator("tbody tr").first).to_contain_text("web-1")
    expect(page.get_by_label("Sort by")).to_have_value("-name")


def test_graph_wider_than_its_container_shows_a_scroll_hint(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    expect(page.get_by_text("scroll sideways for more")).to_be_visible()


def test_state_badge_is_not_animated_with_reduced_motion(page: Page, plan: ActionPlan) -> None:
    in_another_thread(lambda: ActionPlan.objects.update(state="ONGOING"))
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    badge = page.locator("h1 .state-ongoing")
    assert badge.evaluate("(one) => getComputedStyle(one, '::before').animationName") == "none"


def test_success_message_disappears_when_the_plan_starts(page: Page, plan: ActionPlan) -> None:
    page.goto(reverse("plans:detail", args=[plan.uuid]))
    page.get_by_role("link", name="Start…", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Start").click()
    expect(page.get_by_text("Action plan started. An applier will run it.")).to_be_visible()
    in_another_thread(lambda: ActionPlan.objects.update(state="ONGOING"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("ONGOING")
    expect(page.get_by_text("Action plan started. An applier will run it.")).to_have_count(0)


@pytest.fixture
def undelivered(transactional_db: None) -> None:
    make_undelivered(subscribe_to(f"http://192.0.2.7/{'x' * 1900}", "n" * 255))


def test_notification_pages_fit_every_screen_width(
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
