"""Console pages of action plans: permissions, buttons and refusals."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags
from pytest_django import Settings

from actions.graph.proposals import ProposedAction
from actions.models import Action, ActionEvent
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from plans.planning.proposals import propose
from tests.builders import make_audit, make_cluster, make_plan, make_strategy
from watcher_site.models import Service


@pytest.fixture
def administrator(client: Client, django_user_model: type[User]) -> Client:
    """A browser in which a superuser is logged in."""
    client.force_login(django_user_model.objects.create_superuser("alice"))
    return client


def page(client: Client, plan: ActionPlan, **options: Any) -> str:
    return client.get(reverse("plans:detail", args=[plan.uuid]), **options).content.decode()


def press(client: Client, verb: str, plan: ActionPlan) -> str:
    """Press a button, and return the resulting page."""
    return client.post(reverse(f"plans:{verb}", args=[plan.uuid]), follow=True).content.decode()


def log_in_with(client: Client, *permissions: str) -> Client:
    user = User.objects.create_user("rob")
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client.force_login(user)
    return client


def test_plan_page_redirects_to_the_login_without_a_session(client: Client, db: None) -> None:
    plan = make_plan({"a": []})
    response = client.get(reverse("plans:detail", args=[plan.uuid]))
    assert response.headers["Location"].startswith(reverse("login"))


def test_plan_list_without_the_view_permission_is_403_with_the_reason(client: Client, db: None) -> None:
    response = log_in_with(client).get(reverse("plans:list"))
    assert response.status_code == 403
    text = response.content.decode()
    assert ("your account does not have the permission" in text, "A cloud administrator can" in text) == (True, True)


def test_deleted_plan_returns_404(administrator: Client) -> None:
    plan = make_plan({"a": []})
    plan.remove()
    assert administrator.get(reverse("plans:detail", args=[plan.uuid])).status_code == 404


def test_plan_list_shows_the_progress_of_each_plan(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []}, audit=make_audit("nightly"), strategy=make_strategy())
    Action.objects.filter(pk=plan.actions.first().pk).update(state="SUCCEEDED")
    text = administrator.get(reverse("plans:list")).content.decode()
    assert "nightly" in text
    assert "1 of 2" in text


@pytest.mark.parametrize("audit", [None, "nightly"])
def test_plan_page_contains_the_words_action_plan_once(administrator: Client, audit: str | None) -> None:
    plan = make_plan(audit=audit and make_audit(audit))
    (header,) = re.findall('<header class="page-header">.*?</h1>', page(administrator, plan), re.DOTALL)
    text = " ".join(strip_tags(header).split())
    assert text.count("Action plan") == 1


@pytest.mark.parametrize("name", ["preflight", "timeline"])
def test_pages_of_a_plan_without_a_name_link_it_by_its_uuid(administrator: Client, name: str) -> None:
    plan = make_plan()
    text = administrator.get(reverse(f"plans:{name}", args=[plan.uuid])).content.decode()
    (eyebrow,) = re.findall('<p class="eyebrow">.*?</p>', text, re.DOTALL)
    assert " ".join(strip_tags(eyebrow).split()) == f"Action plan {str(plan.uuid)[:8]} ?"


def test_plan_list_is_filtered_by_state(administrator: Client) -> None:
    recommended, failed = make_plan(), make_plan(state="FAILED")
    text = administrator.get(reverse("plans:list"), {"state": "FAILED"}).content.decode()
    assert str(failed.uuid) in text
    assert str(recommended.uuid) not in text


BUTTONS = {
    "RECOMMENDED": {"start", "cancel", "delete"},
    "PENDING": {"cancel"},
    "ONGOING": {"cancel"},
    "CANCELLING": set(),
    "SUCCEEDED": {"delete"},
    "SUPERSEDED": {"delete"},
}


@pytest.mark.parametrize(("state", "expected"), BUTTONS.items())
def test_plan_page_has_the_buttons_allowed_in_its_state(administrator: Client, state: str, expected: set[str]) -> None:
    text = page(administrator, make_plan({"a": []}, state=state))
    assert {verb for verb in ("start", "cancel", "delete") if f'id="{verb}"' in text} == expected


def test_readers_see_no_buttons(client: Client, db: None) -> None:
    text = page(log_in_with(client, "view_actionplan"), make_plan({"a": []}))
    assert not [verb for verb in ("start", "cancel", "delete") if f'id="{verb}"' in text]


@pytest.mark.parametrize("verb", ["start", "cancel", "delete"])
def test_readers_are_refused_when_they_send_the_form_of_a_button(client: Client, db: None, verb: str) -> None:
    plan = make_plan({"a": []})
    log_in_with(client, "view_actionplan")
    assert client.post(reverse(f"plans:{verb}", args=[plan.uuid])).status_code == 403
    assert ActionPlan.objects.present().get().state == "RECOMMENDED"


def test_start_button_sets_the_plan_pending(administrator: Client) -> None:
    plan = make_plan({"a": []})
    assert "Action plan started." in press(administrator, "start", plan)
    assert ActionPlan.objects.get().state == "PENDING"


def test_start_of_an_already_started_plan_is_refused_with_its_state(administrator: Client) -> None:
    changed = timezone.now() - timedelta(minutes=3)
    text = press(administrator, "start", make_plan({"a": []}, state="ONGOING", updated_at=changed))
    assert "Cannot start the action plan: it is already ONGOING (updated 3\xa0minutes ago)." in text


@pytest.mark.parametrize(("verb", "state"), [("cancel", "SUCCEEDED"), ("cancel", "CANCELLING"), ("delete", "ONGOING")])
def test_operation_not_allowed_in_the_state_is_refused_without_a_dialog(
    administrator: Client, verb: str, state: str
) -> None:
    plan = make_plan({"a": []}, state=state)
    text = administrator.get(reverse(f"plans:{verb}", args=[plan.uuid]), follow=True).content.decode()
    assert f"Cannot {verb} the action plan: it is already {state}." in text


def test_get_requests_do_not_change_a_plan(administrator: Client) -> None:
    plan = make_plan({"a": []})
    for verb in ("start", "cancel", "delete"):
        administrator.get(reverse(f"plans:{verb}", args=[plan.uuid]))
    assert ActionPlan.objects.present().get().state == "RECOMMENDED"


def test_cancel_requires_confirmation(administrator: Client) -> None:
    plan = make_plan({"a": []})
    question = administrator.get(reverse("plans:cancel", args=[plan.uuid])).content.decode()
    assert "Cancel this action plan?" in question
    assert "a new plan can continue its unfinished actions" in question
    press(administrator, "cancel", plan)
    assert ActionPlan.objects.get().state == "CANCELLED"


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_confirmation_names_the_action_plan(administrator: Client, verb: str) -> None:
    plan = make_plan({"a": []}, audit=make_audit("Maintenance of compute-03"))
    question = administrator.get(reverse(f"plans:{verb}", args=[plan.uuid])).content.decode()
    assert "<strong><bdi>Maintenance of compute-03</bdi></strong>:" in question


def test_confirmation_shows_the_uuid_of_a_plan_without_a_name(administrator: Client) -> None:
    plan = make_plan()
    question = administrator.get(reverse("plans:delete", args=[plan.uuid])).content.decode()
    assert f"<strong><bdi>{plan.uuid}</bdi></strong>:" in question


def test_deleting_a_running_plan_is_refused_with_the_advice_to_cancel_it(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    assert "Cannot delete the action plan: it is ONGOING. Cancel it first." in press(administrator, "delete", plan)
    assert ActionPlan.objects.present().exists()


def test_delete_redirects_to_the_plan_list(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="SUCCEEDED")
    assert f"Deleted action plan {plan.uuid}." in press(administrator, "delete", plan)


@pytest.mark.parametrize(
    ("state", "updates"), [("RECOMMENDED", True), ("PENDING", True), ("ONGOING", True), ("SUCCEEDED", False)]
)
def test_plan_page_updates_itself_only_in_states_that_change(administrator: Client, state: str, updates: bool) -> None:
    assert ('hx-trigger="every' in page(administrator, make_plan({"a": []}, state=state))) == updates


def test_update_contains_only_the_changing_part_of_the_page(administrator: Client) -> None:
    text = page(administrator, make_plan({"a": []}, state="ONGOING"), headers={"HX-Request": "true"})
    assert text.lstrip().startswith('<div id="progress"')


def request_part(client: Client, url: str, version: str = "") -> HttpResponse:
    return client.get(url, headers={"HX-Request": "true", "HX-PTag": version})


def version_in(response: HttpResponse) -> str:
    return re.search(r'hx-ptag="(\w+)"', response.content.decode())[1]


@pytest.fixture
def same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("watcher_site.console.pages.time.time", lambda: 0.0)


@pytest.mark.parametrize("name", ["plans:detail", "actions:detail", "plans:list"])
def test_unchanged_part_is_answered_with_304(administrator: Client, same_moment: None, name: str) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING")
    record = plan.actions.earliest("pk") if name == "actions:detail" else plan
    url = reverse(name, args=[] if name == "plans:list" else [record.uuid])
    first = version_in(request_part(administrator, url))
    unchanged = request_part(administrator, url, first)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    Action.objects.filter(pk=plan.actions.earliest("pk").pk).update(state="SUCCEEDED", updated_at=timezone.now())
    assert request_part(administrator, url, first).status_code == 200


def test_query_count_of_an_unchanged_part_is_limited(
    administrator: Client, same_moment: None, django_assert_num_queries: Any
) -> None:
    url = reverse("plans:detail", args=[make_plan({"a": [], "b": ["a"]}, state="ONGOING").uuid])
    version = version_in(request_part(administrator, url))
    with django_assert_num_queries(6):
        request_part(administrator, url, version)


@pytest.mark.parametrize("signal", [Action.Signal.SUSPEND, Action.Signal.RESUME])
def test_signal_changes_the_version_of_a_plan_without_running_actions(
    administrator: Client, same_moment: None, signal: Action.Signal
) -> None:
    plan = make_plan({"a": []}, state="ONGOING", suspended_by="rosa" if signal == Action.Signal.RESUME else None)
    url = reverse("plans:detail", args=[plan.uuid])
    version = version_in(request_part(administrator, url))
    signal_plan(plan, signal, "rosa")
    assert request_part(administrator, url, version).status_code == 200


def test_new_action_event_changes_the_version_of_a_plan(administrator: Client, same_moment: None) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    url = reverse("plans:detail", args=[plan.uuid])
    version = version_in(request_part(administrator, url))
    ActionEvent.objects.create(action=plan.actions.get(), event="execute")
    assert request_part(administrator, url, version).status_code == 200


@pytest.mark.parametrize(("state", "is_shown"), [("ONGOING", True), ("SUCCEEDED", False)])
def test_self_updating_page_shows_a_notice_without_javascript(
    administrator: Client, state: str, is_shown: bool
) -> None:
    url = reverse("plans:detail", args=[make_plan({"a": []}, state=state).uuid])
    page = administrator.get(url).content.decode()
    assert ("Without JavaScript this page does not update itself." in page) == is_shown


def test_update_after_the_session_ended_reloads_the_page(client: Client, db: None) -> None:
    plan = make_plan({"a": []})
    response = client.get(reverse("plans:detail", args=[plan.uuid]), headers={"HX-Request": "true"})
    assert response.headers["HX-Refresh"] == "true"


@pytest.mark.parametrize("size", [5, 100])
def test_plan_page_query_count_does_not_depend_on_the_number_of_actions(
    administrator: Client, django_assert_num_queries: Any, size: int
) -> None:
    graph: dict[str, list[str]] = {str(number): [str(number - 1)] if number else [] for number in range(size)}
    plan = make_plan(graph, audit=make_audit(), strategy=make_strategy())
    with django_assert_num_queries(14):
        page(administrator, plan)


def parents_column(page: str) -> list[str]:
    """Return the texts of the column of parents, without those of actions without parents."""
    cells = re.findall(r'<td class="parents"[^>]*>(.*?)</td>', page, re.DOTALL)
    return [text for cell in cells if (text := " ".join(re.sub(r"<[^>]*>", "", cell).split()))]


def test_action_table_names_the_objects_of_parents(administrator: Client) -> None:
    plan = make_plan({"web-1": [], "web-2": [], "web-3": [], "web-4": ["web-1", "web-2", "web-3"]})
    assert parents_column(page(administrator, plan)) == ["web-1, web-2 and 1 more"]


def test_action_table_names_the_types_of_parents_on_the_same_object(administrator: Client) -> None:
    plan = make_plan({"web-1": []})
    parent, child = plan.actions.get(), Action(action_plan=plan, action_type="sleep")
    child.input_parameters = {"duration": 1, "resource_name": "web-1"}
    child.save()
    child.parents.add(parent)
    assert parents_column(page(administrator, plan)) == ["nop"]


def test_large_plan_shows_layers_instead_of_actions(administrator: Client) -> None:
    graph = {str(number): [str(number - 1)] if number % 2 else [] for number in range(302)}
    text = page(administrator, make_plan(graph))
    assert 'id="layers"' in text
    assert "151 PENDING" in text


def test_action_table_is_filtered_by_state(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    Action.objects.filter(pk=plan.actions.first().pk).update(state="FAILED")
    response = administrator.get(reverse("plans:detail", args=[plan.uuid]), {"state": "FAILED"})
    assert [one.state for one in response.context["table"].data] == ["FAILED"]


def test_plan_without_actions_shows_that_the_audit_found_nothing_to_change(administrator: Client) -> None:
    assert "The audit found nothing to change" in page(administrator, make_plan())


def test_texts_of_users_and_clouds_are_escaped(administrator: Client) -> None:
    text = page(administrator, make_plan({"<script>alert(1)</script>": []}, status_message="<b>bold</b>"))
    assert "<script>alert(1)" not in text
    assert "&lt;b&gt;bold" in text


def test_plan_page_requires_the_view_permission_for_actions(client: Client, stranger: User) -> None:
    stranger.user_permissions.add(Permission.objects.get(codename="view_actionplan"))
    client.force_login(stranger)
    assert client.get(f"/console/plans/{make_plan({'a': []}).uuid}/").status_code == 403


def test_ended_plan_shows_the_number_of_actions_by_state(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []}, state="SUCCEEDED")
    plan.actions.filter(input_parameters__message="a").update(state="SKIPPED")
    plan.actions.filter(input_parameters__message="b").update(state="SUCCEEDED")
    text = administrator.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert "<strong>1</strong> succeeded, <strong>1</strong> skipped" in text
    assert "actions finished, " not in text


def test_skipped_actions_are_not_counted_as_finished(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": []})
    Action.objects.filter(pk=plan.actions.first().pk).update(state="SKIPPED")
    text = " ".join(page(administrator, plan).split())
    assert "<strong>0</strong> of <strong>2</strong> actions finished, 1 skipped" in text
    assert "<span>0 of 2<br>" in administrator.get(reverse("plans:list")).content.decode()


def test_status_message_links_the_actions_that_it_names(administrator: Client) -> None:
    plan = make_plan({"a": []})
    named = plan.actions.get()
    ActionPlan.objects.update(state="SUCCEEDED", status_message=f"1 of 1: {named.uuid} by bob.")
    link = (
        f'<a href="{reverse("actions:detail", args=[named.uuid])}" title="{named.uuid}"><bdi>nop a</bdi></a> by bob.'
    )
    assert link in page(administrator, plan)


def with_events(number: int) -> ActionPlan:
    plan = make_plan({"a": []})
    moment = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
    ActionEvent.objects.bulk_create(
        ActionEvent(action=plan.actions.get(), event="execute", start_time=moment) for _ in range(number)
    )
    return plan


def test_action_events_show_their_date(administrator: Client) -> None:
    assert ">2026-03-01 12:00:05</time>" in page(administrator, with_events(1))


@pytest.mark.parametrize(("number", "more"), [(12, False), (13, True)])
def test_more_than_twelve_events_are_shown_on_request(administrator: Client, number: int, more: bool) -> None:
    plan = with_events(number)
    assert ("Show more events" in page(administrator, plan)) == more
    address = reverse("plans:detail", args=[plan.uuid])
    whole = administrator.get(address, {"events": "all"}).content.decode()
    assert whole.count('class="event-name"') == number
    assert "Show more events" not in whole


def choose(client: Client, plan: ActionPlan, value: str) -> str:
    address = reverse("plans:on-failure", args=[plan.uuid])
    return client.post(address, {"on_failure": value}, follow=True).content.decode()


@pytest.mark.parametrize(
    ("before", "offered", "sentence"),
    [
        ("continue", "stop", "If an action fails, dependent actions do not run."),
        ("stop", "continue", "If an action fails, dependent actions run."),
    ],
)
def test_on_failure_is_changed_by_a_button(administrator: Client, before: str, offered: str, sentence: str) -> None:
    plan = make_plan({"a": []}, on_failure=before)
    assert f'name="on_failure" value="{offered}"' in " ".join(page(administrator, plan).split())
    assert sentence in choose(administrator, plan, offered)
    assert ActionPlan.objects.get().on_failure == offered


def test_on_failure_button_is_absent_and_its_form_refused_after_the_plan_began(administrator: Client) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    assert 'id="on-failure"' not in page(administrator, plan)
    assert "on_failure update not allowed for actionplan state: ONGOING" in choose(administrator, plan, "stop")
    assert ActionPlan.objects.get().on_failure == "continue"


def test_readers_cannot_change_on_failure(client: Client, db: None) -> None:
    plan = make_plan({"a": []})
    log_in_with(client, "view_actionplan", "view_action")
    assert 'id="on-failure"' not in page(client, plan)
    assert client.post(reverse("plans:on-failure", args=[plan.uuid]), {"on_failure": "stop"}).status_code == 403


MISSING = {
    "No applier is running: the plan waits until one is started (manage.py run_applier).",
    "No worker is running: actions wait until one is started (manage.py run_worker).",
}


@pytest.mark.parametrize(
    ("executor", "alive", "missing"),
    [
        ("threads", [], "No applier"),
        ("threads", [Service.APPLIER], None),
        ("celery", [Service.WORKER], "No applier"),
        ("celery", [Service.APPLIER], "No worker"),
        ("celery", [Service.APPLIER, Service.WORKER], None),
    ],
)
def test_plan_page_names_the_process_that_must_be_started(
    administrator: Client, settings: Settings, executor: str, alive: list[str], missing: str | None
) -> None:
    settings.EXECUTOR = executor
    for name in alive:
        Service.register(name, "one.example")
    text = page(administrator, make_plan({"a": []}, state="ONGOING"))
    assert [words.split(" is ")[0] for words in MISSING if words in text] == ([missing] if missing else [])


def test_duration_of_a_sleep_action_is_shown_in_seconds(administrator: Client) -> None:
    plan = make_plan({"a": []})
    plan.actions.update(action_type="sleep", input_parameters={"duration": 25})
    (cell,) = re.findall(r"<div>([^<]*)<span class=\"manner\"><bdi>([^<]*)<", page(administrator, plan))
    assert (cell[0].strip(), cell[1]) == ("", "25 s")


def test_plan_without_an_audit_is_named_after_its_operation(administrator: Client) -> None:
    cluster = make_cluster("shop")
    inputs = {"resource_id": str(cluster.uuid), "resource_name": "shop"}
    plan = propose([ProposedAction("CLUSTER_SCALE_OUT", inputs), ProposedAction("nop", {"message": "x"})])
    for address in (reverse("plans:list"), reverse("home"), reverse("plans:detail", args=[plan.uuid])):
        assert "CLUSTER_SCALE_OUT shop" in administrator.get(address).content.decode()
