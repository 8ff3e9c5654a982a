"""The console's pages of exclusions."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.models.exclusions import Exclusion
from plans.planning.proposals import propose
from tests.actions.exclusions.builders import make_exclusion
from tests.actions.exclusions.test_exclusions import OFFICE_HOURS, nop
from tests.builders import make_plan, make_server

pytestmark = pytest.mark.django_db
FORM = {"name": "never db", "reason": "licence", "zone": "Europe/Berlin", "every_action": "on"}


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def post(client: Client, page: str = "new", *arguments: Any, **fields: Any) -> str:
    return client.post(reverse(f"exclusions:{page}", args=arguments), {**FORM, **fields}, follow=True).content.decode()


def test_exclusion_is_created_with_the_fields_of_the_form(administrator: Client) -> None:
    server = make_server("db")
    window = {**OFFICE_HOURS, "weekdays": ["monday"], "first_day": "2030-01-01"}
    named = {"action_types": ["migrate"], "servers": f"db\n{server.uuid}"}
    post(administrator, expires_at="2999-01-01T00:00", **named, **window)
    rule = Exclusion.objects.get()
    assert (rule.name, rule.owner, rule.action_types) == ("never db", "alice", ["migrate"])
    assert rule.targets == {"servers": [str(server.uuid)]}
    assert rule.window == {**window, "last_day": None}
    assert f"{rule.expires_at:%Y-%m-%d %H:%M}" == "2998-12-31 23:00"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"servers": "nobody"}, "There is no server nobody."),
        ({"opens": "08:00"}, "Missing. A window needs both opens and closes"),
        ({"expires_at": "2020-01-01T00:00"}, "Must not be in the past"),
        ({"name": "FREEZE"}, "Another exclusion is called FREEZE."),
        ({"action_types": ["fly"]}, "fly is not one of the available choices"),
    ],
)
def test_invalid_value_is_refused_next_to_its_field(administrator: Client, fields: dict[str, Any], words: str) -> None:
    make_exclusion("freeze")
    assert words in post(administrator, **fields)
    assert Exclusion.objects.count() == 1


def test_exclusion_of_all_actions_requires_a_confirmation(administrator: Client) -> None:
    assert "confirm that all actions are excluded." in post(administrator, every_action="")
    assert not Exclusion.objects.exists()
    post(administrator)
    assert Exclusion.objects.get().action_types == []


@pytest.mark.parametrize("selected", [{"action_types": ["nop"]}, {"servers": "db"}])
def test_exclusion_of_selected_actions_requires_no_confirmation(
    administrator: Client, selected: dict[str, Any]
) -> None:
    make_server("db")
    post(administrator, every_action="", **selected)
    assert Exclusion.objects.exists()


def test_trial_of_an_exclusion_of_all_actions_requires_no_confirmation(administrator: Client) -> None:
    plan = make_plan({"a": []})
    assert "confirm that" not in post(administrator, every_action="", plan=str(plan.uuid), **{"try": "1"})


def test_form_of_an_exclusion_of_all_actions_has_its_confirmation(administrator: Client) -> None:
    rule = make_exclusion("freeze")
    text = administrator.get(reverse("exclusions:change", args=[rule.uuid])).content.decode()
    assert re.search(r'<input type="checkbox" name="every_action"[^>]* checked', text)


def test_all_invalid_values_are_reported_together(administrator: Client) -> None:
    make_exclusion("freeze")
    wrong = {
        "name": "FREEZE",
        "servers": "nobody\nno other",
        "clusters": "web",
        "closes": "18:00",
        "expires_at": "2020-01-01T00:00",
        "action_types": ["fly"],
    }
    text = post(administrator, **wrong)
    for words in (
        "Another exclusion is called FREEZE.",
        "There are no servers nobody, no other.",
        "There is no cluster web.",
        "Missing. A window needs both",
        "Must not be in the past",
        "fly is not one of the available choices",
    ):
        assert text.count(words) == 1, words
    assert Exclusion.objects.count() == 1


def test_removed_owner_becomes_the_saving_user(administrator: Client) -> None:
    rule = make_exclusion(owner="databases")
    post(administrator, "change", rule.uuid, owner="")
    assert Exclusion.objects.get().owner == "alice"


def test_exclusion_is_tried_in_the_form_without_being_saved(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    text = post(administrator, action_types=["nop"], plan=str(plan.uuid), **{"try": "1"})
    assert "<strong>2</strong> actions would be skipped" in text
    assert not Exclusion.objects.exists()
    assert "Choose a plan to test against." in post(administrator, **{"try": "1"})


def test_unchanged_fields_of_the_form_keep_their_stored_values(administrator: Client) -> None:
    server = make_server("db")
    said = {"reason": "licence", "zone": "Europe/Berlin", "targets": {"servers": ["db"]}, "window": OFFICE_HOURS}
    rule = make_exclusion("never db", expires_at="2999-01-01T00:00", **said)
    server.__class__.objects.soft_delete()
    page = administrator.get(reverse("exclusions:change", args=[rule.uuid]))
    form = page.context["form"]
    shown = {name: form[name].value() for name in form.fields}
    fields = {name: value for name, value in shown.items() if value is not None} | {"name": "never the database"}
    post(administrator, "change", rule.uuid, **fields)
    changed = Exclusion.objects.get()
    assert changed.name == "never the database"
    assert (changed.targets, changed.window, changed.expires_at) == (rule.targets, rule.window, rule.expires_at)


def test_exclusion_page_shows_its_fields_skipped_actions_and_a_trial(administrator: Client) -> None:
    rule = make_exclusion(reason="audit week", action_types=["nop"])
    plan = propose([nop("a")])
    text = administrator.get(reverse("exclusions:detail", args=[rule.uuid]), {"plan": str(plan.uuid)}).content.decode()
    for words in ("audit week", "nop a", str(plan.uuid)[:8], "<strong>1</strong> action would be skipped"):
        assert words in text
    assert "frozen" in administrator.get(reverse("exclusions:list")).content.decode()


def test_exclusion_is_disabled_and_enabled_by_buttons_and_filtered_by_enabled(administrator: Client) -> None:
    rule = make_exclusion()
    page = reverse("exclusions:detail", args=[rule.uuid])
    assert 'id="disable"' in administrator.get(page).content.decode()
    assert "Exclusion frozen disabled." in post(administrator, "disable", rule.uuid)
    text = administrator.get(page).content.decode()
    assert 'id="enable"' in text
    assert 'id="disable"' not in text
    listed = administrator.get(reverse("exclusions:list"), {"enabled": "False"}).content.decode()
    assert "frozen" in listed
    assert "frozen" not in administrator.get(reverse("exclusions:list"), {"enabled": "True"}).content.decode()
    assert "Exclusion frozen enabled." in post(administrator, "enable", rule.uuid)


def test_exclusion_is_deleted_after_confirmation(administrator: Client) -> None:
    rule = make_exclusion()
    where = reverse("exclusions:delete", args=[rule.uuid])
    assert "Delete this exclusion?" in administrator.get(where).content.decode()
    assert "Deleted exclusion frozen." in administrator.post(where, follow=True).content.decode()
    assert not Exclusion.objects.present().exists()


def test_readers_see_no_exclusion_buttons_and_are_refused(client: Client, reader: User) -> None:
    rule = make_exclusion()
    client.force_login(reader)
    text = client.get(reverse("exclusions:detail", args=[rule.uuid])).content.decode()
    assert 'id="change"' not in text
    assert 'id="delete"' not in text
    for page, arguments in (("new", []), ("change", [rule.uuid]), ("delete", [rule.uuid]), ("disable", [rule.uuid])):
        assert client.post(reverse(f"exclusions:{page}", args=arguments), FORM).status_code == 403


def test_exclusions_are_refused_without_the_view_permission(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    assert client.get(reverse("exclusions:list")).status_code == 403
    assert client.get(reverse("exclusions:detail", args=[make_exclusion().uuid])).status_code == 403


@pytest.mark.parametrize(("operation", "look"), [("enable", "primary"), ("disable", "danger")])
def test_confirmation_is_red_only_for_an_operation_that_removes_protection(
    administrator: Client, operation: str, look: str
) -> None:
    rule = make_exclusion()
    text = administrator.get(reverse(f"exclusions:{operation}", args=[rule.uuid])).content.decode()
    assert f'class="btn btn-{look}"' in text
