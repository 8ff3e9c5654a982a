"""Messages on pages: names instead of UUIDs, and counts first; the API returns the stored texts."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags
from django.utils.translation import override

from actions.models import Action
from plans.console.messages import lead_with_counts, show_message
from plans.models import ActionPlan
from tests.builders import action, make_audit, make_plan, make_server
from watcher_site.console.naming import find_names, find_plain_names, name_objects


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def text_of(client: Client, name: str, *arguments: Any) -> str:
    return client.get(reverse(name, args=arguments)).content.decode()


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("One or more actions were skipped. 4 of 12: a, b.", "4 of 12 skipped: a, b."),
        (
            "One or more actions were skipped. 1 of 3 failed: a. 1 of 3 skipped: b.",
            "1 of 3 failed: a. 1 of 3 skipped: b.",
        ),
        ("One or more actions were skipped.", "One or more actions were skipped."),
        ("Action plan was cancelled by bob.", "Action plan was cancelled by bob."),
    ],
)
def test_plan_message_begins_with_the_counts(message: str, shown: str) -> None:
    assert lead_with_counts(message) == shown


def test_message_in_an_action_row_names_the_target(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    uuid = "156274ba-0b8c-4c3c-8a2c-6a1f6c3d2f11"
    Action.objects.update(
        input_parameters={"resource_id": uuid, "resource_name": "web-1"},
        status_message=f"Action was skipped automatically: Instance {uuid} is not running.",
        state="SKIPPED",
    )
    assert "Instance <bdi>web-1</bdi> is not running." in text_of(administrator, "plans:detail", plan.uuid)


def test_message_in_an_action_row_links_other_objects(administrator: Client) -> None:
    server = make_server("db-7")
    Action.objects.filter(pk=make_plan({"a": []}).actions.get().pk).update(status_message=f"Waits for {server.uuid}.")
    link = f'Waits for <a href="/console/servers/{server.uuid}/" title="{server.uuid}"><bdi>db-7</bdi></a>.'
    assert link in text_of(administrator, "actions:list")


def test_deleted_object_is_named_without_a_link(administrator: Client) -> None:
    server = make_server("<db>", deleted_at=timezone.now())
    Action.objects.filter(pk=make_plan({"a": []}).actions.get().pk).update(status_message=f"Waits for {server.uuid}.")
    assert "Waits for <bdi>&lt;db&gt;</bdi>." in text_of(administrator, "actions:list")


def test_plan_list_names_skipped_actions(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []}, state="SUCCEEDED")
    skipped = action(plan, "a")
    message = f"One or more actions were skipped. 1 of 2: {skipped.uuid} by bob (closing)."
    ActionPlan.objects.update(status_message=message)
    text = text_of(administrator, "plans:list")
    link = f'<a href="/console/actions/{skipped.uuid}/" title="{skipped.uuid}"><bdi>{skipped.called}</bdi></a>'
    assert f">1 of 2 skipped: {link} by bob (closing)." in text
    assert f'title="{message}"' in text


@pytest.mark.parametrize("page", ["plans:list", "plans:detail"])
def test_plan_message_names_a_server_without_a_record(administrator: Client, page: str) -> None:
    plan = make_plan({"a": []}, state="FAILED")
    server = "156274ba-0b8c-4c3c-8a2c-6a1f6c3d2f11"
    Action.objects.update(input_parameters={"resource_id": server, "resource_name": "web-1"})
    ActionPlan.objects.update(
        status_message=f"1 action failed: {plan.actions.get().uuid} (Instance {server} could not be found)."
    )
    assert "(Instance <bdi>web-1</bdi> could not be found)." in text_of(
        administrator, page, *([plan.uuid] if page == "plans:detail" else [])
    )


@pytest.mark.parametrize("number", [2, 8])
def test_name_query_count_does_not_depend_on_the_number_of_objects(
    db: None, number: int, django_assert_num_queries: Any
) -> None:
    servers = [make_server(f"web-{one}") for one in range(number)]
    with django_assert_num_queries(3):
        names = find_names([f"{one.uuid} stopped" for one in servers], {})
    assert {strip_tags(name) for name in names.values()} == {one.name for one in servers}


def test_superseded_plan_links_the_newer_plan(administrator: Client) -> None:
    newer = make_plan(audit=make_audit("nightly"))
    plan = make_plan(
        state="SUPERSEDED", status_message=f"Action plan was superseded by the newer action plan {newer.uuid}."
    )
    assert (
        f'<a href="{reverse("plans:detail", args=[newer.uuid])}" title="{newer.uuid}"><bdi>nightly</bdi>'
        in text_of(administrator, "plans:detail", plan.uuid)
    )


def test_name_of_a_plan_does_not_replace_its_uuid_in_terminals(db: None) -> None:
    text = f"Action plan was superseded by the newer action plan {make_plan(audit=make_audit('nightly')).uuid}."
    assert find_plain_names([text], {}) == {}


def test_truncated_uuid_is_omitted() -> None:
    assert name_objects("3 failed: Instance 156274ba-0b8c-4c…", {}) == "3 failed: Instance …"


def test_complete_uuid_at_the_end_of_a_truncated_message_is_named() -> None:
    uuid = "156274ba-0b8c-4c3c-8a2c-6a1f6c3d2f11"
    assert name_objects(f"3 failed: Instance {uuid}…", {uuid: "<web>"}) == "3 failed: Instance <bdi>&lt;web&gt;</bdi>…"


def test_plan_page_omits_a_truncated_uuid(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="FAILED")
    ActionPlan.objects.update(status_message="1 of 1 failed: Instance 156274ba-0b8c-4c…")
    assert "Instance …" in text_of(administrator, "plans:detail", plan.uuid)


def test_summary_of_a_plan_is_in_the_language_of_the_reader() -> None:
    one, two = "156274ba-0b8c-4c3c-8a2c-6a1f6c3d2f11", "156274ba-0b8c-4c3c-8a2c-6a1f6c3d2f12"
    stored = (
        "One or more actions were skipped. 3 of 5 actions failed:"
        f" {one} (execute: Instance {two} not found), {two} (disk full, full) and 1 more. 1 action reverted."
        f" 1 of 5 skipped: {two} by bob (2 of 3 failed: x, y). 1 of 5 cancelled: {one} (Action was cancelled by eve)."
    )
    with override("de"):
        shown = show_message(stored)
    assert shown == (
        f"3 von 5 Aktionen fehlgeschlagen: {one} (Ausführung: Server {two} nicht gefunden), {two} (disk full, full)"
        f" und 1 weitere. 1 Aktion zurückgenommen. 1 von 5 übersprungen: {two} durch bob (2 of 3 failed: x, y)."
        f" 1 von 5 abgebrochen: {one} (Aktion von eve abgebrochen)."
    )


def test_counts_of_an_ended_plan_are_in_the_language_of_the_reader(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []}, state="SUCCEEDED")
    Action.objects.filter(pk=action(plan, "a").pk).update(state="SKIPPED")
    Action.objects.filter(pk=action(plan, "b").pk).update(state="SUCCEEDED")
    answer = administrator.get(reverse("plans:detail", args=[plan.uuid]), headers={"accept-language": "de"})
    assert "1 erfolgreich, 1 übersprungen" in " ".join(strip_tags(answer.content.decode()).split())
