"""The layout of pages and tables: column widths, indentation and controls, on wide screens and on phones."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from playwright.sync_api import Page, expect
from pytest_django import Settings

from actions.models import Action, ActionEvent
from plans.models import ActionPlan
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import make_audit, make_node, make_plan, make_server, make_strategy
from tests.end_to_end.console.browser import browser_page
from tests.watcher_site.notifications.relaying import make_undelivered, subscribe_to
from watcher_site.models import Notification

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
]

DESK, PHONE = 1400, 390
# The number of rows that the lower edge of a list cuts.
CUT_ROWS = """(list) => {
  const edge = list.getBoundingClientRect().bottom;
  const rows = [...list.children].map((row) => row.getBoundingClientRect());
  return rows.filter((row) => row.top < edge - 1 && row.bottom > edge + 1).length;
}"""
# The words in the cells of tables that continue on the next line. Separators are blanks, and the places in names.
BROKEN_WORDS = """() => {
  const broken = [];
  for (const cell of document.querySelectorAll("td")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/[^\\s_@./-]+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((part) => part.top)).size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""
LINE = "(one) => parseFloat(getComputedStyle(one).lineHeight)"
# The texts that are cut at the end of their line.
CUT_TEXTS = """() => [...document.querySelectorAll(".one-line")]
  .filter((text) => text.scrollWidth > text.clientWidth).map((text) => text.textContent)"""
WIDER = (
    """() => [...document.querySelectorAll(".table-container")].some((part) => part.scrollWidth > part.clientWidth)"""
)
# The left edges of the contents of cells, without check boxes.
EDGES = """() => [...document.querySelectorAll("tbody td:not(.choose) > div")]
  .map((content) => Math.round(content.getBoundingClientRect().left))"""


@pytest.fixture
def rows(transactional_db: None) -> None:
    make_audit()


@pytest.fixture
def page(cloud_admin: User, client: Client, live_server: Any) -> Iterator[Page]:
    client.force_login(cloud_admin)
    with browser_page(base_url=live_server.url, viewport={"width": DESK, "height": 900}) as page:
        session = client.cookies["sessionid"].value
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        yield page
        assert page.complaints == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["audits:list", "plans:list"])
def test_empty_list_has_no_button_for_a_comparison(page: Page, name: str) -> None:
    page.goto(reverse(name))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("button", name="Compare selected")).to_be_hidden()


def test_list_with_rows_has_a_button_for_a_comparison(rows: None, page: Page) -> None:
    page.goto(reverse("audits:list"))
    expect(page.get_by_role("button", name="Compare selected")).to_be_visible()


@pytest.fixture
def lists(transactional_db: None) -> None:
    """Fill each list with names and texts of usual lengths."""
    strategy = make_strategy("vm_workload_consolidation", "server_consolidation")
    strategy.goal.display_name, strategy.display_name = "Server Consolidation", "VM Workload Consolidation Strategy"
    strategy.goal.save()
    strategy.save()
    message = "Action failed: the server web-1 was not found, because it was deleted in the meantime."
    columns = {"strategy": strategy, "state": "FAILED", "status_message": message}
    audit = make_audit("vm_workload_consolidation-2026-11-21T12:10:30.420311", audit_type="CONTINUOUS", **columns)
    times = {"start_time": now() - timedelta(minutes=9), "end_time": now()}
    make_plan({"a": []}, audit=audit, **columns, **times, started_by="alice.administrator@example.org")
    node = make_node("compute-with-a-long-host-name-01.production.example.org")
    make_server("database-replica-of-production-1", node, task_state="migrating", unhealthy_reason="It is slow.")
    make_undelivered(subscribe_to("https://chat.example.org/1", "operators-of-production"))
    Notification.objects.update(event_type="action_plan.execution.end")


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("name", ["audits:list", "plans:list", "cluster:servers", "notifications:undelivered"])
def test_words_in_the_columns_of_a_list_are_not_broken(lists: None, page: Page, name: str, language: str) -> None:
    page.set_extra_http_headers({"Accept-Language": language})
    page.goto(reverse(name))
    assert page.locator("tbody tr").count() == 1
    assert page.evaluate(BROKEN_WORDS) == []
    assert not page.evaluate(WIDER)


def test_words_in_the_tables_of_the_overview_are_not_broken(lists: None, page: Page) -> None:
    page.goto(reverse("home"))
    expect(page.locator("td", has_text="vm_workload_consolidation").first).to_be_visible()
    assert page.evaluate(BROKEN_WORDS) == []


def test_words_in_the_heading_of_an_audit_are_not_broken_on_a_phone(lists: None, page: Page) -> None:
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(reverse("audits:list"))
    page.locator("td a").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("vm_workload_consolidation")
    assert page.evaluate(BROKEN_WORDS.replace('"td"', '"h1"')) == []


@pytest.fixture
def comparison(transactional_db: None) -> str:
    """Return the page of a comparison of two plans with names of several words."""
    audits = [make_audit(f"Consolidation of the servers in hall {hall} before its maintenance") for hall in "AB"]
    query = urlencode({"compare": [make_plan({"a": []}, audit=audit).uuid for audit in audits]}, doseq=True)
    return f"{reverse('compare-plans')}?{query}"


def test_differences_of_a_comparison_are_within_the_page(comparison: str, page: Page) -> None:
    page.goto(comparison)
    expect(page.get_by_role("columnheader", name="Difference").first).to_be_visible()
    table = page.locator(".table-responsive:has(.comparison)").first
    assert table.evaluate("(table) => table.scrollWidth <= table.clientWidth")


@pytest.fixture
def long_plan(lists: None) -> None:
    ActionPlan.objects.update(state="ONGOING", start_time=now() - timedelta(hours=23, minutes=58), end_time=None)


def test_long_duration_of_a_plan_does_not_overlap_the_next_column(long_plan: None, page: Page) -> None:
    page.goto(reverse("plans:list"))
    cell = page.locator("td", has_text="running for")
    assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")
    assert not page.evaluate(WIDER)


def test_names_and_receivers_of_subscriptions_use_the_width_of_the_page(lists: None, page: Page) -> None:
    page.goto(reverse("notifications:list"))
    expect(page.get_by_role("cell", name="operators-of-production", exact=True)).to_be_visible()
    assert page.evaluate(CUT_TEXTS) == []
    assert not page.evaluate(WIDER)


@pytest.fixture
def actions(transactional_db: None) -> None:
    Action.objects.filter(action_plan=make_plan({"a": [], "b": []}), input_parameters__message="a").update(
        state="SUCCEEDED"
    )


def test_states_of_selectable_actions_are_aligned_with_other_cells_on_a_phone(actions: None, page: Page) -> None:
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(reverse("actions:list"))
    expect(page.locator("td.choose input")).to_have_count(1)
    assert len(set(page.evaluate(EDGES))) == 1


@pytest.fixture
def named_action(transactional_db: None) -> Action:
    return make_plan({"a": []}, audit=make_audit("x")).actions.get()


def test_help_link_is_never_alone_on_a_line(named_action: Action, page: Page) -> None:
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(reverse("actions:detail", args=[named_action.uuid]))
    is_beside = """(length) => {
      document.querySelector(".eyebrow a").textContent = "x".repeat(length);
      const [before, help] = [".eyebrow .copy", ".eyebrow .help"]
        .map((selector) => document.querySelector(selector).getBoundingClientRect());
      return help.top < before.bottom && help.right <= innerWidth;
    }"""
    assert [length for length in range(1, 60) if not page.evaluate(is_beside, length)] == []


@pytest.fixture
def short_name(transactional_db: None) -> str:
    return reverse("exclusions:detail", args=[make_exclusion("x").uuid])


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_kind_of_a_record_with_a_short_name_is_on_one_line(short_name: str, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(short_name)
    lines = """(kind) => {
      const range = document.createRange();
      range.selectNodeContents(kind.firstChild);
      return range.getClientRects().length;
    }"""
    assert page.locator(".eyebrow").evaluate(lines) == 1


@pytest.fixture
def large_plan(transactional_db: None) -> ActionPlan:
    """Return a plan of 20 layers, whose actions are not drawn."""
    return make_plan({str(number): [str(number - 20)] if number >= 20 else [] for number in range(400)})


@pytest.mark.parametrize("width", [DESK, PHONE])
def test_list_of_layers_is_cut_between_two_rows(large_plan: ActionPlan, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("plans:detail", args=[large_plan.uuid]))
    assert page.locator("#layers li").count() == 20
    assert page.locator("#layers").evaluate("(list) => list.scrollHeight > list.clientHeight")
    assert page.locator("#layers").evaluate(CUT_ROWS) == 0


@pytest.fixture
def documentation(settings: Settings, tmp_path: Path) -> None:
    """Build a page with a table whose first column is wider than a phone."""
    settings.DOCUMENTATION_FOLDER = tmp_path
    table = f"<table><tr><td><code>{'X' * 60}</code></td><td>{'words ' * 60}</td></tr></table>"
    page = {
        "title": "Settings",
        "toc": "",
        "body": f"<section><h1>Settings</h1>{table}<pre>{'x' * 110}</pre></section>",
    }
    for name in ("index", "settings"):
        (tmp_path / f"{name}.fjson").write_text(json.dumps(page))


@pytest.mark.parametrize(("width", "number"), [(DESK, 0), (PHONE, 2)])
def test_wide_tables_and_examples_of_the_documentation_scroll_only_on_a_phone(
    documentation: None, page: Page, width: int, number: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("docs:page", args=["settings"]))
    assert page.locator("article :is(table, pre)").count() == 2
    wide = """(parts) => parts.filter((part) => part.scrollWidth > part.clientWidth)
      .map((part) => getComputedStyle(part).backgroundAttachment)"""
    # A shadow of the background, which does not scroll, is at an edge where the part continues.
    shadow = "local, local, scroll, scroll"
    assert page.locator("article :is(table, pre)").evaluate_all(wide) == [shadow] * number


@pytest.fixture
def long_names(transactional_db: None) -> None:
    for name in ("a", "b"):
        make_audit(name + "-long-name" * 6)


def test_choices_of_a_comparison_are_not_cut_on_a_phone(long_names: None, page: Page) -> None:
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(reverse("compare-audits"))
    expect(page.locator("main select")).to_have_count(2)
    one_line = page.locator("main select").first.evaluate(LINE)
    assert [one.bounding_box()["height"] > 3 * one_line for one in page.locator("main select").all()] == [True, True]


@pytest.fixture
def plan_with_a_long_type(transactional_db: None) -> ActionPlan:
    """Return a plan that ended, with an action of a long type."""
    plan = make_plan({"a": []}, state="SUCCEEDED", start_time=now() - timedelta(minutes=9), end_time=now())
    plan.actions.update(
        action_type="change_nova_service_state",
        input_parameters={"resource_id": "compute-03", "resource_name": "compute-03", "state": "disabled"},
        state="SUCCEEDED",
        attempt=1,
        start_time=plan.start_time,
        end_time=plan.end_time,
    )
    ran = plan.actions.get()
    ActionEvent.objects.create(action=ran, event="execute", start_time=ran.start_time, finish_time=ran.end_time)
    return plan


@pytest.mark.parametrize("width", [1024, 1200, DESK])
def test_type_of_an_action_of_a_plan_is_on_one_line(plan_with_a_long_type: ActionPlan, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(reverse("plans:detail", args=[plan_with_a_long_type.uuid]))
    lines = """(cell) => {
      const range = document.createRange();
      range.setStartBefore(cell.firstChild);
      range.setEndBefore(cell.querySelector(".identifier"));
      return new Set([...range.getClientRects()].map((part) => part.top)).size;
    }"""
    assert page.locator("td.type > div").evaluate(lines) == 1


def test_timeline_fits_a_window_of_1200_pixels(plan_with_a_long_type: ActionPlan, page: Page) -> None:
    page.set_viewport_size({"width": 1200, "height": 900})
    page.goto(reverse("plans:timeline", args=[plan_with_a_long_type.uuid]))
    assert page.locator("#timeline-picture").evaluate("(part) => part.scrollWidth <= part.clientWidth")


@pytest.mark.parametrize("name", ["audits:list", "cluster:servers"])
def test_choice_of_the_order_is_on_one_line_on_a_phone_in_german(lists: None, page: Page, name: str) -> None:
    page.set_extra_http_headers({"Accept-Language": "de"})
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(reverse(name))
    choice = page.locator(".sorting select")
    assert choice.bounding_box()["height"] < 2.5 * choice.evaluate(LINE)  # type: ignore[index]


@pytest.fixture
def full_node(transactional_db: None) -> None:
    make_server("web-1", make_node("compute1", memory=512, vcpus=1), memory=512, vcpus=1)


def test_share_of_memory_is_on_one_line_in_german(full_node: None, page: Page) -> None:
    page.set_extra_http_headers({"Accept-Language": "de"})
    page.goto(reverse("trends"))
    cells = page.locator(".heat-cell")
    expect(cells.last).to_have_text("Arbeitsspeicher 100 %")
    heights = cells.evaluate_all("(cells) => cells.map((cell) => cell.offsetHeight)")
    assert heights[0] == heights[1]
    assert cells.evaluate_all("(cells) => cells.every((cell) => cell.scrollWidth <= cell.clientWidth)")


@pytest.mark.parametrize("language", ["en", "de"])
def test_heads_of_cells_are_not_broken_on_a_phone(lists: None, page: Page, language: str) -> None:
    page.set_extra_http_headers({"Accept-Language": language})
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(reverse("cluster:nodes"))
    # The widths of the longest words of the heads, and of the column of heads.
    widths = """(cells) => cells.map((cell) => {
      const head = document.createElement("span");
      head.style.cssText = "position: absolute; width: min-content; font-size: .8125rem";
      head.textContent = cell.dataset.label;
      document.body.append(head);
      const width = head.getBoundingClientRect().width;
      head.remove();
      return width - parseFloat(getComputedStyle(cell).gridTemplateColumns);
    })"""
    assert max(page.locator("tbody td").evaluate_all(widths)) <= 0


@pytest.fixture
def pending_action(transactional_db: None) -> Action:
    return make_plan({"a": []}).actions.get()


def test_outline_of_an_action_includes_the_cell_of_its_buttons(pending_action: Action, page: Page) -> None:
    page.goto(reverse("plans:detail", args=[pending_action.action_plan.uuid]))
    page.locator(".actions tbody tr").evaluate("(row) => { row.tabIndex = -1; row.focus(); }")
    shadow = "(cell) => getComputedStyle(cell).boxShadow"
    assert page.locator(".actions td.skip").evaluate(shadow) != "none"


def test_changed_action_has_one_colour_on_a_phone(pending_action: Action, page: Page) -> None:
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.goto(
        f"{reverse('plans:detail', args=[pending_action.action_plan.uuid])}#action-{str(pending_action.uuid)[:8]}"
    )
    expect(page.locator(".actions tr:target")).to_have_count(1)
    colours = "(cells) => cells.map((cell) => getComputedStyle(cell).backgroundColor)"
    assert set(page.locator(".actions tr:target > td").evaluate_all(colours)) == {"rgba(0, 0, 0, 0)"}
