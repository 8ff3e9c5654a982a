"""The panels of watcher-dashboard in Horizon, which finds the site in the catalog of Keystone."""

from collections.abc import Callable, Iterator
from threading import Thread

import pytest
from django.db import connections
from playwright.sync_api import Locator, Page, expect

from audits.engine.engine import DecisionEngine
from audits.models import AuditTemplate
from audits.plugins import synchronize as synchronize_plugins
from tests.builders import make_audit, make_node, make_plan, make_server
from tests.end_to_end.console.browser import browser_page
from tests.openstack.configuration import PASSWORD
from tests.openstack.control_plane import ControlPlane
from tests.openstack.horizon.dashboard import Dashboard
from tests.openstack.keystone import KeystoneService
from tests.plans.inline import run_waiting

pytestmark = [pytest.mark.openstack, pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def dashboard(service: KeystoneService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    found = Dashboard(service.url, tmp_path_factory.mktemp("horizon"))
    found.install()
    found.start()
    yield found
    found.stop()


@pytest.fixture
def cloud() -> None:
    """Three nodes, with three servers on the first."""
    synchronize_plugins()
    nodes = [make_node(f"compute{number}") for number in (1, 2, 3)]
    for number in (1, 2, 3):
        make_server(f"web-{number}", nodes[0])


@pytest.fixture
def page(cloud: None, registered_site: str, dashboard: Dashboard) -> Iterator[Page]:
    """A browser in Horizon with the session of rosa, an administrator of the project shop."""
    with browser_page(base_url=dashboard.url, viewport={"width": 1400, "height": 900}) as page:
        page.goto("/auth/login/?next=/admin/goals/")
        page.get_by_label("User Name").fill("rosa")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign In").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Goals")
        yield page


@pytest.fixture
def audits() -> None:
    """An audit that succeeded with a plan, a template, and a pending audit."""
    audit = make_audit("tonight", state="SUCCEEDED")
    make_plan({"a": []}, audit=audit)
    AuditTemplate.objects.create(name="a template", goal=audit.goal, strategy=audit.strategy)
    make_audit("tomorrow", state="PENDING")


def save_screenshot(page: Page, name: str) -> None:
    """Save a screenshot of a page in the folder of the control plane."""
    folder = ControlPlane().folder / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", full_page=True)


def run_in_thread(work: Callable[[], object]) -> None:
    """Run a function in a thread, since Django refuses the thread of the browser, which has an event loop."""

    def run() -> None:
        work()
        connections.close_all()

    thread = Thread(target=run)
    thread.start()
    thread.join()


def row(page: Page, text: str) -> Locator:
    return page.locator("#content_body tbody tr").filter(has_text=text)


def submit(page: Page) -> None:
    page.locator(".modal-footer [type=submit], .modal-footer .btn-primary").first.click()


def create_template(page: Page) -> None:
    page.goto("/admin/audit_templates/")
    page.get_by_role("link", name="Create Template").click()
    page.get_by_label("Name").fill("empty a node")
    page.get_by_label("Goal").select_option("Cluster Maintaining")
    page.get_by_label("Strategy").select_option("Host Maintenance Strategy")
    save_screenshot(page, "create a template")
    submit(page)
    expect(page.get_by_text("Audit Template was successfully created.")).to_be_visible()
    expect(row(page, "empty a node")).to_contain_text("cluster_maintaining")


def create_audit(page: Page) -> None:
    page.goto("/admin/audits/")
    page.get_by_role("link", name="Create Audit").click()
    page.get_by_label("Audit Template").select_option("empty a node")
    expect(page.locator("#strategy-info")).to_contain_text("maintenance_node")
    page.get_by_label("Name", exact=True).fill("tonight")
    page.get_by_label("Audit Type").select_option("ONESHOT")
    page.get_by_label("Strategy Parameters (JSON)").fill('{"maintenance_node": "compute1"}')
    save_screenshot(page, "create an audit")
    submit(page)
    expect(page.get_by_text("Audit was successfully created.")).to_be_visible()
    expect(row(page, "tonight")).to_contain_text("Pending")


def test_audit_is_created_an_action_skipped_and_the_plan_started(page: Page) -> None:
    create_template(page)
    create_audit(page)
    run_in_thread(lambda: DecisionEngine().run(once=True))

    page.reload()
    expect(row(page, "tonight")).to_contain_text("Succeeded")
    row(page, "tonight").get_by_role("link").first.click()
    expect(page.locator("#content_body")).to_contain_text("maintenance_node: compute1")
    save_screenshot(page, "audit")
    row(page, "Recommended").get_by_role("link").first.click()
    expect(row(page, "Migrate")).to_have_count(3)
    save_screenshot(page, "plan")

    row(page, "Migrate").first.get_by_role("link", name="Skip Action").click()
    page.get_by_label("Reason for skipping").fill("month-end closing")
    save_screenshot(page, "skip an action")
    submit(page)
    expect(page.get_by_text("Action was successfully skipped.")).to_be_visible()
    expect(row(page, "Skipped")).to_have_count(1)
    plan = page.url

    page.goto("/admin/action_plans/")
    row(page, "Recommended").get_by_role("button", name="Start Action Plan").click()
    expect(page.get_by_text("Action Plan started")).to_be_visible()
    save_screenshot(page, "started plan")
    run_in_thread(run_waiting)

    page.goto(plan)
    expect(page.locator("#content_body")).to_contain_text("SUCCEEDED")
    expect(row(page, "Succeeded")).to_have_count(3)
    save_screenshot(page, "followed plan")
    row(page, "Skipped").get_by_role("link").first.click()
    expect(page.locator("#content_body")).to_contain_text("month-end closing")
    save_screenshot(page, "skipped action")
    assert page.complaints == []


def find_errors(page: Page) -> list[str]:
    """Return the error messages of the page and of the browser."""
    return [*page.locator(".alert-danger, .alert-warning").all_inner_texts(), *page.complaints]


def test_lists_and_details_of_all_panels_show_no_error(audits: None, page: Page) -> None:
    for panel in ("goals", "strategies", "audit_templates", "audits", "action_plans", "actions"):
        page.goto(f"/admin/{panel}/")
        expect(page.locator("#content_body tbody tr a").first).to_be_visible()
        save_screenshot(page, f"list of {panel}")
        assert find_errors(page) == []
        page.locator("#content_body tbody tr a").first.click()
        expect(page.locator("dl")).to_contain_text("UUID" if panel != "action_plans" else "Audit ID")
        save_screenshot(page, f"one of {panel}")
        assert find_errors(page) == []


def choose(page: Page, name: str, verb: str) -> None:
    """Click an action in the menu of a row."""
    row(page, name).locator(".dropdown-toggle").click()
    row(page, name).get_by_role("button", name=verb).click()


def test_audit_is_cancelled_and_archived(audits: None, page: Page) -> None:
    page.goto("/admin/audits/")
    choose(page, "tomorrow", "Cancel Audit")
    expect(row(page, "tomorrow")).to_contain_text("CANCELLED")
    save_screenshot(page, "cancelled audit")
    choose(page, "tomorrow", "Archive Audit")
    page.locator(".modal-footer .btn-danger, .modal-footer .btn-primary").click()
    expect(row(page, "tomorrow")).to_have_count(0)
    assert find_errors(page) == []
