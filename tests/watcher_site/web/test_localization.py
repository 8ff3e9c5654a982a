"""Pages use the language and the time zone of the user; responses of the API do not depend on them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from babel.messages.mofile import write_mo
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils.translation import trans_real
from pytest_django import Settings

from actions.models import Action
from tests.builders import make_plan
from tests.repository.translations import read_catalogue
from watcher_site.models import HistoryEntry

pytestmark = pytest.mark.django_db
GERMAN = {"Accept-Language": "de-DE,de;q=0.9"}


@pytest.fixture(autouse=True)
def _german(settings: Settings, tmp_path: Path) -> Iterator[None]:
    """Compile the German catalogue, as ``make install`` does."""
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    with (folder / "django.mo").open("wb") as file:
        write_mo(file, read_catalogue("de"))
    settings.LOCALE_PATHS = [tmp_path]
    trans_real._translations.pop("de", None)
    yield
    trans_real._translations.pop("de", None)


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_page_is_in_the_language_of_the_browser(browser: Client) -> None:
    page = text(browser.get(reverse("plans:list"), headers=GERMAN))
    assert '<html lang="de">' in page
    assert "Noch keine Aktionspläne" in page


def test_column_headings_derived_from_fields_are_translated(browser: Client) -> None:
    make_plan()
    page = text(browser.get(reverse("plans:list"), headers=GERMAN))
    assert 'data-label="Zustand"' in page
    assert "State" not in page


def test_login_page_is_in_the_language_of_the_browser(client: Client) -> None:
    assert "Anmelden" in text(client.get(reverse("login"), headers=GERMAN))


def test_language_without_a_translation_falls_back_to_english(browser: Client) -> None:
    assert '<html lang="en">' in text(browser.get(reverse("plans:list"), headers={"Accept-Language": "fr"}))


def test_site_works_without_compiled_catalogues(browser: Client, settings: Settings, tmp_path: Path) -> None:
    settings.LOCALE_PATHS = [tmp_path / "none"]
    trans_real._translations.pop("de", None)
    assert browser.get(reverse("plans:list"), headers=GERMAN).status_code == 200


def test_language_preference_overrides_the_language_of_the_browser(browser: Client) -> None:
    browser.post(reverse("account:preferences"), {"language": "en", "zone": ""})
    assert '<html lang="en">' in text(browser.get(reverse("plans:list"), headers=GERMAN))


def test_unknown_preference_is_refused(browser: Client) -> None:
    answer = browser.post(reverse("account:preferences"), {"language": "xx", "zone": "Mars/Base"}, follow=True)
    assert "Language: " in text(answer)
    assert not {"language", "zone"} & browser.cookies.keys()


def plan_at_noon() -> Any:
    plan = make_plan({"a": []})
    type(plan).objects.filter(pk=plan.pk).update(created_at=datetime(2026, 1, 5, 12, 0, tzinfo=UTC))
    return plan


@pytest.mark.parametrize(
    ("cookies", "shown"),
    [
        ({}, "2026-01-05 12:00:00 UTC"),
        ({"browser_zone": "Europe%2FBerlin"}, "2026-01-05 13:00:00 Europe/Berlin"),
        ({"browser_zone": "Europe/Berlin", "zone": "Asia/Tokyo"}, "2026-01-05 21:00:00 Asia/Tokyo"),
        ({"browser_zone": "../../etc/passwd", "zone": "no zone"}, "2026-01-05 12:00:00 UTC"),
    ],
)
def test_times_are_in_the_time_zone_of_the_user(browser: Client, cookies: dict[str, str], shown: str) -> None:
    plan = plan_at_noon()
    browser.cookies.load(cookies)
    assert f'title="{shown}"' in text(browser.get(reverse("plans:detail", args=[plan.uuid])))


def test_filter_times_are_in_the_time_zone_of_the_user(browser: Client) -> None:
    browser.cookies.load({"zone": "Asia/Tokyo"})
    page = text(browser.get(reverse("history:list"), {"since": "2026-01-05T21:00"}))
    assert "Since (Asia/Tokyo)" in page


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/",
        "/v1/action_plans",
        "/v1/actions/unknown",
        "/v1/audits?limit=-1",
        "/v1/openapi.json",
        "/compute/v2.1/servers",
        "/orchestration/v1/none/stacks",
        "/identity/v3",
        "/healthz",
        "/nothing",
    ],
)
def test_api_responses_do_not_depend_on_language_and_time_zone(client: Client, cloud_admin: User, path: str) -> None:
    client.force_login(cloud_admin)
    plan_at_noon()
    english = client.get(path)
    client.cookies.load({"language": "de", "zone": "Asia/Tokyo", "browser_zone": "Asia/Tokyo"})
    german = client.get(path, headers=GERMAN)
    assert (german.status_code, german.content) == (english.status_code, english.content)
    assert "Content-Language" not in german


def test_refusal_is_translated_on_the_page_and_english_in_history(browser: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    action = Action.objects.get(action_plan=plan)
    page = text(browser.post(reverse("actions:skip", args=[action.uuid]), {"reason": ""}, headers=GERMAN))
    assert "Aktionen dieses Plans können nicht mehr übersprungen werden" in page
    assert HistoryEntry.objects.get(deed="action.skip").message.startswith("Actions of this plan can no longer")
