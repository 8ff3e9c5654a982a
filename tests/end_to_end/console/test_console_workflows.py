"""Workflows in the console with a real browser and a real server: review, skip, start and monitor a plan."""

import re
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.urls import reverse
from django.utils.timezone import now
from playwright.sync_api import Locator, Page, expect

from actions.models import Action, ActionParent
from audits.engine.engine import DecisionEngine
from cluster.models import Server
from plans.applier.applier import Applier
from plans.executors import ThreadExecutor
from plans.models import ActionPlan
from tests.builders import make_audit, make_node, make_plan, make_server, make_strategy
from tests.end_to_end.console.browser import browser_page

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.postgresql,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture(autouse=True)
def slow_cloud(settings: Any) -> None:
    """Delay each migration, so that the page shows it as ONGOING."""
    settings.EMBEDDED_CLOUD_SECONDS = 4
    settings.POLL_INTERVAL = 0.1


@pytest.fixture
def plan() -> ActionPlan:
    """A plan that migrates five servers away from compute1, with one dependency and one deleted server."""
    source, destination = make_node("compute1"), make_node("compute2")
    servers = [make_server(f"web-{number}", source) for number in range(1, 6)]
    plan = make_plan(audit=make_audit("empty compute1", state="SUCCEEDED"))
    actions = Action.objects.bulk_create(migration(plan, server, destination.hostname) for server in servers)
    ActionParent.objects.create(child=actions[4], parent=actions[0])
    servers[3].delete()
    return plan


def migration(plan: ActionPlan, server: Server, destination: str) -> Action:
    return Action(
        action_plan=plan,
        action_type="migrate",
        input_parameters={
            "resource_id": str(server.uuid),
            "resource_name": server.name,
            "migration_type": "live",
            "source_node": "compute1",
            "destination_node": destination,
        },
    )


@pytest.fixture
def applier() -> Iterator[Thread]:
    """A thread that runs an applier when the test starts it."""
    thread = Thread(target=run_applier)
    yield thread
    if thread.ident:
        thread.join(30)


def run_applier() -> None:
    Applier(ThreadExecutor(2)).run(once=True)
    connections.close_all()


@pytest.fixture
def page(plan: ActionPlan, cloud_admin: User, live_server: Any, applier: Thread) -> Iterator[Page]:
    """A browser with the page of the plan, after the login of alice, a cloud administrator."""
    with browser_page(base_url=live_server.url) as page:
        page.goto(reverse("plans:detail", args=[plan.uuid]))
        page.get_by_label("Username").fill("alice")
        page.get_by_label("Password").fill("alice-password")
        page.get_by_role("button", name="Log in").click()
        yield page


def row(page: Page, server: str) -> Locator:
    """Return the row of the action on a server, which the cells of the actions that wait for it name, too."""
    return page.get_by_role("row").filter(has=page.locator("td.resource", has_text=re.compile(rf"^\s*{server}\b")))


def skip(page: Page, reason: str) -> None:
    """Fill in and send the dialog for the reason."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button", name="Skip", exact=True).click()


def start(page: Page) -> None:
    """Start the plan by the dialog, which has the focus on its heading and not on a button."""
    page.get_by_role("link", name="Start…", exact=True).click()
    dialog = page.get_by_role("dialog", name="Start this action plan?")
    expect(dialog.get_by_role("heading")).to_be_focused()
    expect(dialog.get_by_text("In the current state of the cloud")).to_be_visible()
    dialog.get_by_role("button", name="Start").click()


def test_plan_is_reviewed_started_and_followed_to_its_end(page: Page, applier: Thread) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text("RECOMMENDED")

    row(page, "web-2").get_by_role("button", name="Skip migrate web-2").click()
    skip(page, "month-end closing")
    expect(row(page, "web-2")).to_contain_text("Action skipped by user. Reason: month-end closing (alice)")

    page.get_by_label("Select migrate web-3").check()
    page.get_by_label("Select migrate web-5").check()
    page.get_by_role("button", name="Skip 2 selected").click()
    expect(page.get_by_role("dialog")).to_contain_text("Skip 2 actions?")
    skip(page, "audit week")
    expect(page.get_by_text("2 actions skipped.")).to_be_visible()
    expect(row(page, "web-5").get_by_role("button", name="Skip migrate")).to_have_count(0)

    start(page)
    expect(page.get_by_role("heading", level=1)).to_contain_text("PENDING")
    expect(page.get_by_text("No applier is running")).to_be_visible()

    # From here on the test does not operate the page: all changes come from its polling.
    address = page.url
    applier.start()
    expect(row(page, "web-1")).to_contain_text("ONGOING")
    expect(page.get_by_role("heading", level=1)).to_contain_text("SUCCEEDED")
    assert page.url == address

    expect(row(page, "web-1")).to_contain_text("SUCCEEDED")
    expect(row(page, "web-4")).to_contain_text("Action was skipped automatically:")
    expect(row(page, "web-3")).to_contain_text("audit week")
    expect(page.locator("#progress > .status-message")).to_contain_text("4 of 5 skipped")
    expect(page.locator("#progress")).not_to_have_attribute("hx-trigger", re.compile("every"))
    expect(page.get_by_role("link", name="web-1 migrate SUCCEEDED")).to_be_visible()
    assert page.complaints == []


def test_skipped_action_is_restored(page: Page) -> None:
    row(page, "web-1").get_by_role("button", name="Skip migrate web-1").click()
    skip(page, "not yet")
    row(page, "web-1").get_by_role("button", name="Restore migrate web-1").click()
    expect(page.get_by_text("1 action restored.")).to_be_visible()
    expect(row(page, "web-1").get_by_role("button", name="Skip migrate web-1")).to_be_visible()
    expect(row(page, "web-1")).not_to_contain_text("not yet")


def test_selected_actions_and_an_entered_reason_survive_updates_of_the_page(page: Page) -> None:
    start(page)
    page.get_by_label("Select migrate web-3").check()
    with page.expect_response(lambda response: response.request.headers.get("hx-request") == "true"):
        pass
    page.wait_for_timeout(200)
    expect(page.get_by_label("Select migrate web-3")).to_be_checked()
    page.get_by_role("button", name="Skip 1 selected").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("half a senten")
    with page.expect_response(lambda response: response.request.headers.get("hx-request") == "true"):
        pass
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_have_value("half a senten")


@pytest.fixture
def running(page: Page, plan: ActionPlan) -> Page:
    """The page of the plan while it is ONGOING."""
    change(plan, "ONGOING")
    page.reload()
    return page


def change(plan: ActionPlan, state: str) -> None:
    """Change the state of a plan in another thread, since Django refuses it in the thread of the browser."""
    work = Thread(target=lambda: (ActionPlan.objects.update(state=state, updated_at=now()), connections.close_all()))
    work.start()
    work.join()


def test_focus_and_text_selection_survive_updates_of_the_page(running: Page, plan: ActionPlan) -> None:
    link = row(running, "web-2").get_by_role("link").first
    link.focus()
    running.evaluate("getSelection().selectAllChildren(document.querySelector('#progress .facts dd'))")
    selected = running.evaluate("getSelection().toString()")
    change(plan, "CANCELLING")
    expect(running.get_by_role("heading", level=1)).to_contain_text("CANCELLING")
    expect(link).to_be_focused()
    assert (bool(selected), running.evaluate("getSelection().toString()")) == (True, selected)


def test_page_of_a_recommended_plan_shows_a_start_by_another_user(page: Page, plan: ActionPlan) -> None:
    expect(page.get_by_role("heading", level=1)).to_contain_text("RECOMMENDED")
    change(plan, "ONGOING")
    expect(page.get_by_role("heading", level=1)).to_contain_text("ONGOING")


def test_page_shows_a_warning_while_it_is_offline(running: Page) -> None:
    warning = running.get_by_text("No connection to the site.")
    running.context.set_offline(True)
    expect(warning).to_be_visible()
    running.context.set_offline(False)
    expect(warning).to_be_hidden()


def test_button_while_offline_shows_that_the_request_was_not_sent(running: Page) -> None:
    running.context.set_offline(True)
    running.get_by_role("link", name="Cancel…").first.click()
    expect(running.get_by_text("the request was not sent")).to_be_visible()


def test_escape_closes_the_dialog_without_a_skip(page: Page) -> None:
    row(page, "web-1").get_by_role("button", name="Skip migrate web-1").press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(row(page, "web-1")).to_contain_text("PENDING")


def test_selected_theme_is_remembered(page: Page) -> None:
    html = page.locator("html")
    expect(html).to_have_attribute("data-bs-theme", "light")
    page.get_by_role("button", name="Toggle dark mode").click()
    expect(html).to_have_attribute("data-bs-theme", "dark")
    page.reload()
    expect(html).to_have_attribute("data-bs-theme", "dark")


def run_decision_engine() -> None:
    DecisionEngine().run(once=True)
    connections.close_all()


def test_audit_is_created_and_followed_to_its_plan(page: Page) -> None:
    page.get_by_role("link", name="Audits", exact=True).click()
    page.get_by_role("link", name="New audit").click()
    page.get_by_label("Goal").select_option("cluster_maintaining")
    page.get_by_label("Strategy").select_option("host_maintenance")
    page.get_by_label("Maintenance node").select_option("compute1")
    page.get_by_label("Name").fill("Tonight")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("PENDING")

    engine = Thread(target=run_decision_engine)
    engine.start()
    expect(page.get_by_role("heading", level=1)).to_contain_text("SUCCEEDED")
    engine.join()
    page.get_by_role("row", name="RECOMMENDED").get_by_role("link").click()
    expect(page.get_by_role("button", name="Skip migrate web-1")).to_be_visible()
    assert page.complaints == []


@pytest.fixture
def strategies(db: None) -> None:
    """Two strategies for one goal."""
    make_strategy("first")
    make_strategy("second")


def test_back_after_the_creation_of_an_audit_shows_the_chosen_strategy(strategies: None, page: Page) -> None:
    page.goto(reverse("audits:create"))
    page.get_by_label("Goal").select_option("dummy")
    page.get_by_label("Strategy").select_option("second")
    page.wait_for_url("**strategy=second**")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url(re.compile(r"/audits/[0-9a-f-]{36}/"))
    page.go_back()
    expect(page.get_by_label("Goal")).to_have_value("dummy")
    expect(page.get_by_label("Strategy")).to_have_value("second")
