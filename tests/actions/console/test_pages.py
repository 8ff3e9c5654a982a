"""Pages of actions in the console."""

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import Action, ActionEvent
from tests.builders import action, make_plan
from watcher_site.models import Service


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def page(client: Client, one: Action) -> str:
    return client.get(reverse("actions:detail", args=[one.uuid])).content.decode()


def send(client: Client, verb: str, one: Action, **fields: Any) -> str:
    return client.post(reverse(f"actions:{verb}", args=[one.uuid]), fields, follow=True).content.decode()


def skipped(name: str = "a") -> Action:
    one = action(make_plan({name: []}), name)
    one.skip("alice", "closing")
    one.save_state()
    return one


def test_action_page_shows_parents_and_children(administrator: Client) -> None:
    plan = make_plan({"a": [], "b": ["a"], "c": ["b"]})
    text = page(administrator, action(plan, "b"))
    assert str(action(plan, "a").uuid) in text
    assert str(action(plan, "c").uuid) in text


def test_action_page_shows_its_events(administrator: Client) -> None:
    one = action(make_plan({"a": []}), "a")
    ActionEvent.objects.create(action=one, event="pre_condition", result="Error", details="no such server")
    text = page(administrator, one)
    assert "pre_condition" in text
    assert "no such server" in text


def test_duration_of_an_event_is_in_its_two_largest_units(administrator: Client) -> None:
    one = action(make_plan({"a": []}), "a")
    begun = timezone.now()
    ActionEvent.objects.create(
        action=one, event="execute", start_time=begun, finish_time=begun + timedelta(seconds=3725), result="Success"
    )
    assert "<span>1 h 2 min</span>" in page(administrator, one)


def test_pending_action_is_skipped_from_its_page(administrator: Client) -> None:
    one = action(make_plan({"a": []}), "a")
    assert "Action skipped." in send(administrator, "skip", one, reason="closing")
    assert Action.objects.get().status_message == "Action skipped by user. Reason: closing"


def test_page_of_a_skipped_action_shows_the_user_and_the_reason(administrator: Client) -> None:
    text = page(administrator, skipped())
    assert "Action skipped by user. Reason: closing" in text
    assert "<strong><bdi>alice</bdi></strong>" in text


def test_page_of_an_action_that_was_skipped_on_creation_shows_when(administrator: Client) -> None:
    one = action(make_plan({"a": []}), "a")
    Action.objects.update(state="SKIPPED", skipped_by="rule", status_message="It is excluded.", updated_at=None)
    assert re.search(
        r"Skipped by <strong><bdi>rule</bdi></strong>, <time [^>]*>just now</time>\.", page(administrator, one)
    )


def test_the_reason_of_a_skipped_action_can_be_changed(administrator: Client) -> None:
    assert "Reason changed." in send(administrator, "reason", skipped(), reason="audit week")
    assert Action.objects.get().status_message == "Action skipped by user. Reason: audit week"


def test_too_long_reason_is_refused_and_stays_in_the_form(administrator: Client) -> None:
    text = send(administrator, "reason", skipped(), reason="x" * 300)
    assert "at most 223 characters" in text
    assert "x" * 300 in text


def test_skipping_a_skipped_action_shows_why_it_is_refused(administrator: Client) -> None:
    text = send(administrator, "skip", skipped(), reason="audit week")
    assert "nop a was skipped by alice just now. Reason: closing" in text
    assert "audit week</textarea>" in text


def test_reason_is_shown_again_if_the_plan_has_started(administrator: Client) -> None:
    text = send(administrator, "skip", action(make_plan({"a": []}, state="ONGOING"), "a"), reason="audit week")
    assert "the plan is ONGOING" in text
    assert "Reason that you entered: audit week" in text


def test_reason_is_kept_over_a_login(administrator: Client) -> None:
    one = action(make_plan({"a": []}), "a")
    administrator.logout()
    send(administrator, "skip", one, reason="audit week")
    person = {"username": "alice", "password": "alice-password", "kept": "reason=audit+week"}
    wanted = reverse("actions:skip", args=[one.uuid])
    text = administrator.post(reverse("login"), {**person, "next": wanted}, follow=True).content.decode()
    assert "audit week</textarea>" in text
    assert Action.objects.get().state == "PENDING"


@pytest.mark.parametrize("state", ["ONGOING", "SUCCEEDED"])
def test_skip_form_is_absent_after_the_plan_started(administrator: Client, state: str) -> None:
    assert 'name="reason"' not in page(administrator, action(make_plan({"a": []}, state=state), "a"))


POLLS = {
    ("RECOMMENDED", "PENDING"): False,
    ("ONGOING", "PENDING"): True,
    ("ONGOING", "ONGOING"): True,
    ("ONGOING", "SKIPPED"): False,
    ("SUCCEEDED", "SUCCEEDED"): False,
}


@pytest.mark.parametrize(("states", "polls"), POLLS.items())
def test_page_polls_only_while_the_action_can_change(
    administrator: Client, states: tuple[str, str], polls: bool
) -> None:
    plan = make_plan({"a": []}, state=states[0])
    Action.objects.update(state=states[1])
    assert ("hx-trigger" in page(administrator, action(plan, "a"))) == polls


def test_reader_sees_no_form_and_is_refused(client: Client, reader: User) -> None:
    one = skipped()
    client.force_login(reader)
    assert 'name="reason"' not in page(client, one)
    assert client.post(reverse("actions:reason", args=[one.uuid]), {"reason": "no"}).status_code == 403


def test_list_is_filtered_by_plan(administrator: Client) -> None:
    plan, other = make_plan({"a": []}), make_plan({"a": []})
    text = administrator.get(reverse("actions:list"), {"action_plan": str(plan.uuid)}).content.decode()
    assert str(action(plan, "a").uuid) in text
    assert str(action(other, "a").uuid) not in text


@pytest.mark.parametrize("query", [{"action_plan": "x"}, {"state": "NOPE"}, {"page": "-1"}, {"sort": "x"}])
def test_invalid_query_parameters_are_ignored(administrator: Client, query: dict[str, str]) -> None:
    assert administrator.get(reverse("actions:list"), query).status_code == 200


@pytest.mark.parametrize("size", [3, 40])
def test_list_query_count_does_not_depend_on_the_number_of_actions(
    administrator: Client, django_assert_num_queries: Any, size: int
) -> None:
    make_plan({str(number): [] for number in range(size)})
    with django_assert_num_queries(7):
        administrator.get(reverse("actions:list"))


@pytest.mark.parametrize("name", [Service.APPLIER, Service.WORKER])
def test_page_of_a_running_action_names_its_owner(administrator: Client, name: str) -> None:
    owner = Service.register(name, "one.example")
    one = action(make_plan({"a": []}, state="ONGOING"), "a")
    Action.objects.filter(pk=one.pk).update(state="ONGOING", owner=owner)
    assert f"{name} {owner.pk} on <bdi>one.example</bdi>" in page(administrator, one)


@pytest.mark.parametrize("number", [1, 4])
def test_page_query_count_does_not_depend_on_the_number_of_parameters(
    administrator: Client, django_assert_max_num_queries: Any, number: int
) -> None:
    plan = make_plan({"a": []})
    parameters = {f"server_{place}": str(UUID(int=place)) for place in range(number)}
    plan.actions.update(input_parameters=parameters, outputs=parameters, target=str(UUID(int=99)))
    with django_assert_max_num_queries(19):
        page(administrator, plan.actions.get())


def test_values_of_parameters_and_outputs_are_in_words(administrator: Client) -> None:
    one = action(make_plan({"a": []}), "a")
    Action.objects.filter(pk=one.pk).update(
        input_parameters={"cold": True, "nodes": ["a", "b"]}, outputs={"done": False}
    )
    text = administrator.get(reverse("actions:detail", args=[one.uuid])).content.decode()
    assert re.findall(r"<dt>(?:cold|nodes|done)</dt>\s*<dd>\s*(.*?)\s*</dd>", text) == ["yes", "a, b", "no"]


def test_invalid_reason_for_an_action_that_has_begun_is_text(administrator: Client) -> None:
    one = action(make_plan({"a": []}, state="ONGOING"), "a")
    text = send(administrator, "skip", one, reason="x" * 300)
    assert ("Reason that you entered: xxx" in text, "<textarea" in text) == (True, False)
