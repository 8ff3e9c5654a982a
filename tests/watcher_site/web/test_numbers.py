"""Pages group the digits of numbers in the reader's language, but not in attributes, addresses and fields."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from actions.models import Action, ActionEvent
from actions.models.exclusions import Exclusion
from audits.models import Audit
from plans.models import ActionPlan
from tests.api import Caller
from tests.builders import make_audit, make_node, make_plan, make_pool
from tests.watcher_site.console.test_control_characters import (
    ANSWERS,
    LISTS,
    PROJECT,
    RECORDS,
    address_of_newest,
    make_rows,
)
from watcher_site import history
from watcher_site.accounts.projects import add_member
from watcher_site.messages import translate_message
from watcher_site.request_context import CallingContext
from watcher_site.templatetags.console import amount, gigabytes
from watcher_site.templatetags.names import ELEMENT

pytestmark = pytest.mark.any_database

GERMAN = {"Accept-Language": "de-DE,de;q=0.9"}
ENGLISH = {"Accept-Language": "en"}
LANGUAGES = pytest.mark.parametrize(("language", "separator"), [(ENGLISH, ","), (GERMAN, ".")], ids=["en", "de"])
# Marks each number that is formatted for a reader.
MARK = "#formatted:"
# Attributes with texts for readers.
TEXTS = re.compile(r' (?:title|aria-label|data-announcement|data-label|content)="[^"]*"')
ATTRIBUTE = re.compile(r' [\w:-]+="[^"]*"')
SKIPPED = 1_033
TOTAL = 2_345


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    add_member("root", PROJECT)
    return client


@pytest.fixture
def plan(db: None) -> ActionPlan:
    """A plan with thousands of actions, of which a part is skipped."""
    plan = make_plan(audit=make_audit(interval="86400", audit_type=Audit.Type.CONTINUOUS))
    states = [Action.State.SKIPPED] * SKIPPED + [Action.State.PENDING] * (TOTAL - SKIPPED)
    Action.objects.bulk_create(Action(action_plan=plan, action_type="nop", state=state) for state in states)
    return plan


def words_of(browser: Client, address: str, language: dict[str, str]) -> str:
    """Return the text of a page in one line, without elements."""
    html = browser.get(address, headers=language).content.decode()
    return " ".join(re.sub("<[^>]*>", " ", html).split())


@LANGUAGES
def test_page_of_a_plan_groups_the_numbers_of_actions(
    browser: Client, plan: ActionPlan, language: dict[str, str], separator: str
) -> None:
    words = words_of(browser, reverse("plans:detail", args=[plan.uuid]), language)
    assert f"2{separator}345" in words
    assert f"1{separator}033 SKIPPED" in words
    assert re.findall(r"\b(2345|1033|1312)\b", words) == []


@LANGUAGES
def test_list_of_plans_groups_the_numbers_of_actions(
    browser: Client, plan: ActionPlan, language: dict[str, str], separator: str
) -> None:
    words = words_of(browser, reverse("plans:list"), language)
    assert re.search(rf"\b0 (of|von) 2\{separator}345 1\{separator}033 (skipped|übersprungen)", words)


@LANGUAGES
def test_overview_groups_the_numbers_of_actions(
    browser: Client, plan: ActionPlan, language: dict[str, str], separator: str
) -> None:
    words = words_of(browser, reverse("home"), language)
    assert f"2{separator}345" in words
    assert re.findall(r"\b(2345|1033|1312)\b", words) == []


@LANGUAGES
def test_page_of_an_audit_groups_the_seconds_of_its_interval(
    browser: Client, plan: ActionPlan, language: dict[str, str], separator: str
) -> None:
    words = words_of(browser, reverse("audits:detail", args=[plan.audit.uuid]), language)
    assert re.search(rf"\b86\{separator}400 (seconds|Sekunden)", words)


@LANGUAGES
def test_message_about_skipped_actions_groups_their_number(
    browser: Client, plan: ActionPlan, language: dict[str, str], separator: str
) -> None:
    address = reverse("plans:skip", args=[plan.uuid])
    fields = {"all": "matching", "place": "state=PENDING"}
    dialog = browser.post(address, fields, headers=language).content.decode()
    assert f"1{separator}312" in dialog
    confirmed = re.search(r'name="confirmed"\s+value="([^"]*)"', dialog)
    assert confirmed
    browser.post(address, {**fields, "confirmed": confirmed[1], "reason": "a freeze"}, headers=language)
    words = words_of(browser, reverse("plans:detail", args=[plan.uuid]), language)
    assert re.search(rf"\b1\{separator}312 (actions skipped|Aktionen übersprungen)\.", words)


@pytest.mark.parametrize(("language", "separator"), [("en", ","), ("de", ".")])
def test_stored_message_groups_amounts(language: str, separator: str) -> None:
    with translation.override(language):
        assert f"1{separator}033" in translate_message("Action waits for 1033 actions that it derived.")


def test_stored_message_keeps_the_digits_of_names() -> None:
    assert translate_message("Instance 12345 not found") == "Server 12345 not found"


def test_history_groups_counts(browser: Client, db: None) -> None:
    history.record("action.skip", "a plan", caller=CallingContext(user="rosa"), details={"count": 12833})
    assert "12,833" in words_of(browser, reverse("history:list"), ENGLISH)


@LANGUAGES
def test_list_of_exclusions_groups_the_numbers_of_targets(
    browser: Client, db: None, language: dict[str, str], separator: str
) -> None:
    Exclusion.objects.create(name="frozen", owner="rosa", targets={"servers": [str(uuid4()) for _ in range(1_033)]})
    words = words_of(browser, reverse("exclusions:list"), language)
    assert f"1{separator}033 {'servers' if separator == ',' else 'Server'}" in words


@LANGUAGES
def test_capacity_of_nodes_and_pools_is_grouped(
    browser: Client, db: None, language: dict[str, str], separator: str
) -> None:
    make_node("big", memory=12_582_912, disk=20_480)
    make_pool("a@lvm#big", total_capacity_gb=40_960)
    assert f"12{separator}288 GB" in words_of(browser, reverse("cluster:nodes"), language)
    assert f"40{separator}960 GB" in words_of(browser, reverse("cluster:pools"), language)


@pytest.mark.parametrize(
    ("megabytes", "text"), [(64, "0.06"), (512, "0.5"), (2048, "2"), (12_582_912, "12,288"), (1536, "1.5")]
)
def test_memory_is_shown_with_at_most_two_decimals(megabytes: int, text: str) -> None:
    assert gigabytes(megabytes) == text


def test_amount_without_decimals_keeps_its_zeros() -> None:
    assert amount(1000) == "1,000"


def test_api_does_not_group_numbers(api: Caller, plan: ActionPlan) -> None:
    Action.objects.filter(pk=plan.actions.first().pk).update(attempt=12_833)
    text = api.get(f"/action_plans/{plan.uuid}", **GERMAN).content.decode()
    assert re.findall(r"\d[.,]\d{3}\b(?!\d|\+|Z)", json.dumps(json.loads(text))) == []


@pytest.fixture
def _marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark numbers of any size where they would be grouped."""
    monkeypatch.setattr("django.utils.numberformat.format", lambda number, *_, **__: f"{MARK}{number}")


def formatted_attributes(html: str) -> Iterator[str]:
    """Yield the attributes with formatted numbers, except texts for readers."""
    for element in ELEMENT.findall(html):
        yield from (one for one in ATTRIBUTE.findall(TEXTS.sub("", element)) if MARK in one)


@pytest.mark.usefixtures("_marked")
@pytest.mark.django_db
@pytest.mark.parametrize("name", [*LISTS, "home", "trends"])
def test_attributes_of_lists_have_no_formatted_numbers(browser: Client, name: str) -> None:
    make_rows("web")
    for number in range(26):
        make_node(f"compute{number}")
        make_plan()
    html = browser.get(f"{reverse(name)}?per_page=25").content.decode()
    assert list(formatted_attributes(html)) == []


@pytest.mark.usefixtures("_marked")
@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(RECORDS))
def test_attributes_of_record_pages_have_no_formatted_numbers(browser: Client, name: str) -> None:
    make_rows("web")
    response = browser.get(address_of_newest(name))
    assert response.status_code in ANSWERS
    assert list(formatted_attributes(response.content.decode())) == []


@pytest.mark.usefixtures("_marked")
@pytest.mark.parametrize("grouping", ["action", "worker", "node"])
def test_attributes_of_a_timeline_with_pages_have_no_formatted_numbers(
    browser: Client, plan: ActionPlan, grouping: str
) -> None:
    end = timezone.now()
    start = end - timedelta(minutes=1)
    plan.actions.update(state=Action.State.SUCCEEDED, attempt=1, start_time=start, end_time=end)
    ActionEvent.objects.bulk_create(
        ActionEvent(action=one, event="execute", host="control", start_time=start, finish_time=end)
        for one in plan.actions.all()
    )
    html = browser.get(f"{reverse('plans:timeline', args=[plan.uuid])}?by={grouping}&page=2").content.decode()
    assert '<svg class="timeline"' in html
    assert list(formatted_attributes(html)) == []


@pytest.mark.usefixtures("_marked")
def test_attributes_of_a_comparison_with_pages_have_no_formatted_numbers(browser: Client, plan: ActionPlan) -> None:
    other = make_plan({"a": []}, audit=plan.audit)
    html = browser.get(f"{reverse('compare-plans')}?compare={plan.uuid}&compare={other.uuid}&page=2").content.decode()
    assert MARK in html
    assert list(formatted_attributes(html)) == []
