"""The labels of history events, shown in the language of the user and accepted in filters."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse
from django.utils.translation import override
from django.views.generic.detail import SingleObjectMixin

from actions.models import ActionEvent
from audits.purging import Purge
from tests.builders import action, make_plan
from watcher_site.console.pages import ListPage, Page, event_of
from watcher_site.history import record
from watcher_site.history.event_labels import DETAILS, OBJECTS, ROWS, VERBS, describe_event
from watcher_site.history.reading import details_in_words
from watcher_site.request_context import CallingContext

ROSA = CallingContext(user="rosa")
ROOT = Path(__file__).resolve().parents[3]
APPS = ("actions", "audits", "cluster", "plans", "watcher_site")
RECORDED = re.compile(r'(?:record|record_many|entries_of|save_together)\(\s*"(\w+)\.(\w+)"')


def views(patterns: list[Any]) -> list[Any]:
    found = []
    for pattern in patterns:
        found += (
            views(pattern.url_patterns)
            if isinstance(pattern, URLResolver)
            else [getattr(pattern.callback, "view_class", None)]
        )
    return [view for view in found if view]


def events_of_pages() -> set[str]:
    pages = [view for view in views(get_resolver("watcher_site.console.urls").url_patterns) if issubclass(view, Page)]
    named = [page for page in pages if page.history_event or issubclass(page, SingleObjectMixin | ListPage)]
    return {event_of(page()) for page in named}


def recorded_events() -> set[tuple[str, str]]:
    files = [path for app in APPS for path in (ROOT / app).rglob("*.py")]
    return {event for path in files for event in RECORDED.findall(path.read_text())}


def test_events_of_all_pages_have_labels() -> None:
    events = [event.partition(".") for event in events_of_pages()]
    assert {kind for kind, _, _ in events} <= OBJECTS.keys()
    assert {verb for _, _, verb in events} <= VERBS.keys()


def test_recorded_events_have_labels() -> None:
    assert {kind for kind, _ in recorded_events()} <= OBJECTS.keys()
    assert {verb for _, verb in recorded_events()} <= VERBS.keys()


@pytest.mark.parametrize(
    ("event", "english", "german"),
    [
        ("action_plan.start", "start action plan", "Aktionsplan: starten"),
        ("user.set_groups", "set groups of user", "Benutzer: Gruppen setzen"),
        ("server.mark", "mark server as unhealthy", "Server: als fehlerhaft markieren"),
        ("stack.clear", "remove the mark of stack", "Stack: Markierung entfernen"),
        ("user.login", "login of user", "Benutzer: anmelden"),
        ("plug_in.do_more", "do more plug in", "plug in: do more"),
        ("command.apply_plan", "apply plan command", "Befehl: apply plan"),
        ("login", "login", "login"),
    ],
)
def test_event_label_is_in_the_language_of_the_user(event: str, english: str, german: str) -> None:
    assert describe_event(event) == english
    with override("de"):
        assert describe_event(event) == german


def test_english_labels_of_details_are_the_names_of_the_api() -> None:
    assert {name: str(label) for name, label in DETAILS.items()} == {name: name.replace("_", " ") for name in DETAILS}


def test_details_are_in_the_language_of_the_user() -> None:
    with override("de"):
        assert details_in_words({"plan_only": True, "number": 2}) == "nur planen: ja; Anzahl: 2"
        details = {"expiry": "2999-01-01 10:00:00.123456+00:00", "scope": "all rights of the account, read only"}
        shown = details_in_words(details)
    assert shown == "Ablauf: 2999-01-01 10:00 UTC; Geltungsbereich: alle Rechte des Kontos, nur lesend"


def test_numbers_of_purged_rows_are_in_the_language_of_the_user() -> None:
    details = {"Action Plans and Actions": 12_000, "History": 1}
    with override("de"):
        assert details_in_words(details) == "Aktionspläne und Aktionen: 12.000; Verlaufseinträge: 1"


@pytest.mark.parametrize("name", ["at most", "number", "samples"])
def test_counts_are_grouped(name: str) -> None:
    assert details_in_words({name: 12_000}) == f"{name}: 12,000"


def test_limits_of_a_quota_are_grouped() -> None:
    quota = {"servers": 12_000, "vcpus": 24_000, "memory": 512_000, "stacks": 1_000}
    assert details_in_words(quota) == "servers: 12,000; vcpus: 24,000; memory: 512,000; stacks: 1,000"


def test_parameters_are_shown_as_they_are_stored() -> None:
    assert details_in_words({"parameters": {"period": 7200}}) == "parameters: period 7200"


def test_rows_of_all_kinds_that_are_purged_have_labels(db: None) -> None:
    assert Purge.by_age().count().keys() <= ROWS.keys()


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    return client


def text(browser: Client, address: str, **query: str) -> str:
    return str(browser.get(address, query).content.decode())


@pytest.mark.parametrize("label", ["Aktionsplan: starten", "aktionsplan: STARTEN", "Aktionsplan", "action_plan.start"])
def test_history_is_filtered_by_the_translated_label(browser: Client, label: str) -> None:
    plan = make_plan({"a": []})
    record("action_plan.start", plan, caller=ROSA)
    record("cluster.check", "web", caller=ROSA)
    page = text(browser, reverse("history:list"), deed=label)
    assert "Aktionsplan: starten" in page
    assert "Cluster: prüfen" not in page


@pytest.mark.parametrize("label", ["Anhalten", "suspend", "resume", "Aktionsplan: anhalten"])
def test_history_is_filtered_by_a_verb_of_signals(browser: Client, label: str) -> None:
    record("action_plan.signal", make_plan({"a": []}), caller=ROSA, details={"signal": "SUSPEND"})
    assert "SUSPEND" in text(browser, reverse("history:list"), deed=label)


def test_phases_of_an_action_are_in_the_language_of_the_user(browser: Client) -> None:
    one = action(make_plan({"a": []}, state="ONGOING"), "a")
    ActionEvent.objects.create(action=one, event="pre_condition", result="Error", start_time=one.created_at)
    page = text(browser, reverse("actions:detail", args=[one.uuid]))
    assert '<span class="event-name" title="pre_condition">Vorbedingung</span>' in page
    assert '<span class="result result-error">Fehler</span>' in page


def test_connection_messages_are_in_the_language_of_the_user(browser: Client) -> None:
    assert 'data-lost="Keine Verbindung zur Site.' in text(browser, reverse("home"))


def test_outcomes_are_in_the_language_of_the_user(browser: Client) -> None:
    plan = make_plan({"a": []})
    record("action_plan.start", plan, caller=ROSA)
    record("action_plan.start", plan, caller=ROSA, outcome="refused", message="It has begun.")
    page = text(browser, reverse("history:list"))
    assert '<span class="outcome-success">Erfolg</span>' in page
    assert '<span class="outcome-refused">abgelehnt</span>' in page
    assert '<option value="refused">abgelehnt</option>' in page
    assert '<span class="outcome-refused">abgelehnt</span>' in text(browser, reverse("plans:detail", args=[plan.uuid]))
