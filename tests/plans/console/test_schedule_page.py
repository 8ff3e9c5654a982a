"""The schedule form of the console, and the pages of scheduled plans."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from plans.console.schedule import ScheduleForm
from plans.models import ActionPlan
from tests.builders import make_plan
from watcher_site.windows.maintenance import WEEKDAYS

BERLIN = {"zone": "Europe/Berlin"}
NIGHTS = {"opens": "22:00", "closes": "04:00"}


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def send(client: Client, plan: ActionPlan, **fields: Any) -> str:
    return client.post(reverse("plans:schedule", args=[plan.uuid]), fields, follow=True).content.decode()


def page(client: Client, plan: ActionPlan) -> str:
    return client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()


def written(**days: str) -> dict[str, Any]:
    """Return a nightly window as it is stored."""
    return {**NIGHTS, "weekdays": list(WEEKDAYS), "first_day": None, "last_day": None, **days}


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def test_plan_is_started_for_a_time_that_the_page_shows(administrator: Client) -> None:
    plan = make_plan({"a": []})
    text = send(administrator, plan, start_at="2100-01-31T22:00", **BERLIN)
    assert "Action plan started. An applier will run it at its scheduled time." in text
    assert "Sun 2100-01-31 22:00 Europe/Berlin" in text
    assert (again(plan).state, f"{again(plan).opens_at:%H:%M}") == ("PENDING", "21:00")


def test_zone_of_a_new_schedule_defaults_to_the_zone_of_the_user(administrator: Client) -> None:
    plan = make_plan({"a": []})
    with timezone.override("Europe/Berlin"):
        assert ScheduleForm(plan)["zone"].value() == "Europe/Berlin"


def test_empty_schedule_form_starts_the_plan_now(administrator: Client) -> None:
    plan = make_plan({"a": []})
    assert "An applier will run it." in send(administrator, plan, zone="UTC")
    assert (again(plan).state, again(plan).opens_at, again(plan).window) == ("PENDING", None, None)


def test_window_of_a_running_plan_is_changed_and_the_form_shows_its_values(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    text = send(administrator, plan, weekdays=["friday", "saturday"], last_day="2100-01-31", **NIGHTS, **BERLIN)
    assert "22:00–04:00, Friday, Saturday, until 2100-01-31 (Europe/Berlin)" in text  # noqa: RUF001
    form = administrator.get(reverse("plans:schedule", args=[plan.uuid])).content.decode()
    assert 'value="22:00"' in form
    assert len(re.findall(r'name="weekdays"[^>]* checked', form)) == 2
    assert 'name="start_at"' not in form


def test_emptied_fields_remove_the_schedule(administrator: Client) -> None:
    plan = make_plan({"a": []})
    send(administrator, plan, start_at="2100-01-31T22:00", **NIGHTS, **BERLIN)
    assert "Schedule saved." in send(administrator, plan, **BERLIN)
    assert (again(plan).start_at, again(plan).window, again(plan).opens_at) == (None, None, None)


def test_changed_zone_keeps_the_local_time(administrator: Client) -> None:
    plan = make_plan({"a": []})
    send(administrator, plan, start_at="2100-01-31T22:00", **BERLIN)
    send(administrator, plan, start_at="2100-01-31T22:00", zone="UTC")
    assert f"{again(plan).opens_at:%H:%M}" == "22:00"


def test_past_start_time_may_be_kept_when_the_window_is_changed(administrator: Client) -> None:
    past = timezone.now() - timedelta(days=1)
    plan = make_plan({"a": []}, state="PENDING", start_at=past, opens_at=past)
    assert "Schedule saved." in send(administrator, plan, start_at=f"{past:%Y-%m-%dT%H:%M}", zone="UTC", **NIGHTS)
    assert again(plan).start_at == past


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"start_at": "soon"}, "start_at", "Must be a time in ISO 8601"),
        ({"start_at": "2001-01-01T00:00"}, "start_at", "Must not be in the past"),
        ({"start_at": "2027-03-28T02:30", **BERLIN}, "start_at", "There is no 02:30 on 2027-03-28"),
        ({"opens": "22:00"}, "closes", "Missing. A window needs both"),
        ({"opens": "22:00", "closes": "22:00"}, "closes", "Must differ from opens"),
        ({"weekdays": "friday"}, "opens", "Missing. A window needs both"),
        ({**NIGHTS, "weekdays": "caturday"}, "weekdays", "Select a valid choice"),
        ({**NIGHTS, "last_day": "2001-01-01"}, "last_day", "The window is over"),
        ({"zone": "Atlantis"}, "zone", "Select a valid choice"),
    ],
)
def test_invalid_value_is_refused_next_to_its_field_and_changes_nothing(
    administrator: Client, fields: dict[str, str], field: str, words: str
) -> None:
    plan = make_plan({"a": []})
    text = send(administrator, plan, **{"zone": "UTC", **fields})
    assert words in text.split(f'id="div_id_{field}"')[1]
    assert (again(plan).state, again(plan).start_at, again(plan).window) == ("RECOMMENDED", None, None)


def test_form_sent_after_the_session_ended_is_shown_again_after_the_login(client: Client, cloud_admin: User) -> None:
    plan = make_plan({"a": []})
    url = reverse("plans:schedule", args=[plan.uuid])
    login = client.post(url, {"start_at": "2100-01-31T22:00", **BERLIN})
    kept = login.context["kept"]
    credentials = {"username": "alice", "password": "alice-password", "next": url, "kept": kept}
    text = client.post(reverse("login"), credentials, follow=True).content.decode()
    assert 'value="2100-01-31T22:00"' in text


BUTTON = 'id="schedule"'


@pytest.mark.parametrize(
    ("state", "is_shown"), [("RECOMMENDED", True), ("PENDING", True), ("ONGOING", True), ("CANCELLING", False)]
)
def test_schedule_button_is_shown_until_the_plan_ends_or_is_cancelled(
    administrator: Client, state: str, is_shown: bool
) -> None:
    assert (BUTTON in page(administrator, make_plan({"a": []}, state=state))) is is_shown


def test_schedule_of_an_ended_plan_cannot_be_changed(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="SUCCEEDED")
    text = administrator.get(reverse("plans:schedule", args=[plan.uuid]), follow=True).content.decode()
    assert "Cannot schedule the action plan: it is already SUCCEEDED" in text


def test_schedule_sent_after_the_plan_ended_is_refused_with_its_state(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="SUCCEEDED")
    assert f"Action plan {plan.uuid} is SUCCEEDED" in send(administrator, plan, **NIGHTS, **BERLIN)


def test_readers_see_no_schedule_button_and_are_refused(client: Client, reader: User) -> None:
    client.force_login(reader)
    plan = make_plan({"a": []})
    assert BUTTON not in page(client, plan)
    assert client.post(reverse("plans:schedule", args=[plan.uuid]), {"zone": "UTC"}).status_code == 403


def test_plan_page_and_list_show_when_the_window_opens(
    administrator: Client,
) -> None:
    opens_at = timezone.now() + timedelta(hours=3, minutes=1)
    plan = make_plan({"a": []}, state="ONGOING", opens_at=opens_at, closes_at=opens_at + timedelta(hours=2))
    text = page(administrator, plan)
    assert "The remaining actions begin" in text
    assert "in 3\xa0hours" in text
    assert "in 3\xa0hours" in administrator.get(reverse("plans:list")).content.decode()


def test_plan_page_shows_that_the_window_expired(administrator: Client) -> None:
    past = timezone.now() - timedelta(days=1)
    plan = make_plan({"a": []}, state="ONGOING", window=written(last_day="2001-01-01"), opens_at=past, closes_at=past)
    assert "The maintenance window is over" in page(administrator, plan)


def test_plan_page_shows_the_next_opening_before_an_applier_updates_it(administrator: Client) -> None:
    past = timezone.now() - timedelta(days=3)
    plan = make_plan({"a": []}, state="PENDING", window=written(first_day="2100-01-31"), opens_at=past, closes_at=past)
    assert "Sun 2100-01-31 22:00 UTC" in page(administrator, plan)


def test_start_message_mentions_the_schedule(administrator: Client) -> None:
    plan = make_plan({"a": []}, opens_at=timezone.now() + timedelta(days=1))
    text = administrator.post(reverse("plans:start", args=[plan.uuid]), follow=True).content.decode()
    assert "An applier will run it at its scheduled time." in text


def test_unknown_zone_of_a_plan_does_not_break_its_pages(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="PENDING", zone="Europe/Atlantis", start_at=timezone.now())
    assert "UTC" in page(administrator, plan)
    assert administrator.get(reverse("plans:schedule", args=[plan.uuid])).status_code == 200
