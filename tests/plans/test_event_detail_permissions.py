"""Failure reasons, which are shown only to users with the permission for event details."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from actions.event_details import generic_message, generic_plan_message
from actions.graph.proposals import ProposedAction
from actions.models import Action
from actions.operations.signals import signal_action
from actions.types.base import Answer, Outcome
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.api import Caller
from tests.builders import make_node, make_operation, make_server
from tests.plans.deriving import behave
from tests.plans.inline import run_waiting
from watcher_site.configuration.policies import ADMIN, EVENT_DETAILS, PROJECT_READER
from watcher_site.models import ProjectMember

pytestmark = pytest.mark.django_db
REASON = "Failed in pre_condition"


@pytest.fixture
def failed() -> Action:
    plan = propose([ProposedAction("nop", {"message": "a", "fail_pre_condition": True})])
    plan.launch()
    run_waiting()
    action: Action = Action.objects.get()
    assert (action.state, REASON in str(action.status_message)) == ("FAILED", True)
    return action


def answers(user: User, action: Action) -> list[dict[str, Any]]:
    """Return the action and its plan as the API shows them, alone and in a list."""
    api, plan = Caller(user, "1.13"), action.action_plan
    return [
        api.get(f"/actions/{action.uuid}").json(),
        api.get("/actions/detail").json()["actions"][0],
        api.get(f"/action_plans/{plan.uuid}").json(),
        api.get("/action_plans/detail").json()["action_plans"][0],
    ]


def test_readers_see_failure_reasons_by_default(failed: Action, reader: User) -> None:
    assert all(REASON in answer["status_message"] for answer in answers(reader, failed))


def test_failure_reasons_are_hidden_without_the_event_details_permission(
    failed: Action, reader: User, settings: Settings
) -> None:
    settings.POLICIES = {EVENT_DETAILS: ADMIN}
    found = answers(reader, failed)
    assert [answer["status_message"] for answer in found] == [
        *["Action failed in pre_condition."] * 2,
        *["1 of 1 action failed."] * 2,
    ]
    assert [answer["status_reason"] for answer in found[:2]] == ["Action failed in pre_condition."] * 2
    assert [answer["outputs"] for answer in found[:2]] == [{}, {}]


def test_failure_reasons_are_shown_with_the_event_details_permission(
    failed: Action, cloud_admin: User, settings: Settings
) -> None:
    settings.POLICIES = {EVENT_DETAILS: ADMIN}
    found = answers(cloud_admin, failed)
    assert all(REASON in answer["status_message"] for answer in found)
    assert found[0]["outputs"] == {"error": REASON}


@pytest.mark.parametrize("rule", [ADMIN, PROJECT_READER])
@pytest.mark.parametrize("page", ["actions:detail", "actions:list", "plans:detail", "plans:list"])
def test_console_pages_apply_the_event_details_permission(
    failed: Action, reader: User, client: Client, settings: Settings, page: str, rule: str
) -> None:
    settings.POLICIES = {EVENT_DETAILS: rule}
    client.force_login(reader)
    uuid = {"actions:detail": failed.uuid, "plans:detail": failed.action_plan.uuid}.get(page)
    answer = client.get(reverse(page, args=[uuid] if uuid else []), headers={"Accept": "text/html"})
    assert (REASON in answer.content.decode().replace("<wbr>", "")) == (rule != ADMIN)


@pytest.mark.parametrize(
    ("state", "message", "shown"),
    [
        ("FAILED", "Action failed in execute: No valid host was found.", "Action failed in execute."),
        ("FAILED", "something else", "Action failed."),
        ("CANCELLED", "Action execution cancelled. It is gone", "Action execution cancelled."),
        ("SKIPPED", "Action skipped by user. Reason: mine", "Action skipped by user. Reason: mine"),
        ("SUCCEEDED", None, None),
    ],
)
def test_generic_message_of_an_action_states_only_its_outcome(state: str, message: str | None, shown: str) -> None:
    assert generic_message(state, message) == shown


@pytest.mark.parametrize(
    ("state", "message", "shown"),
    [
        ("FAILED", "2 of 3 actions failed: a (No host), b (No host)", "2 of 3 actions failed."),
        ("FAILED", "It broke off: a secret", "One or more actions failed."),
        ("FAILED", "Action plan was set aside: a secret", "Action plan was set aside."),
        ("SUCCEEDED", "One or more actions were skipped.", "One or more actions were skipped."),
        (
            "CANCELLED",
            "Cancelled by rosa. 1 of 3 actions failed: a (No host)",
            "Cancelled by rosa. 1 of 3 actions failed.",
        ),
    ],
)
def test_generic_message_of_a_plan_states_only_its_outcome(state: str, message: str, shown: str) -> None:
    assert generic_plan_message(state, message) == shown


@pytest.mark.parametrize(("is_signalled", "state"), [(False, "SUCCEEDED"), (True, "CANCELLED")])
def test_reasons_of_self_cancelled_actions_are_hidden_in_the_plan_message(
    reader: User, settings: Settings, monkeypatch: pytest.MonkeyPatch, is_signalled: bool, state: str
) -> None:
    settings.POLICIES = {EVENT_DETAILS: ADMIN}
    behave(monkeypatch, a=lambda _: Outcome(Answer.CANCEL, "a secret"))
    plan = propose([ProposedAction("nop", {"message": name}) for name in "ab"])
    plan.launch()
    if is_signalled:
        signal_action(plan.actions.order_by("-pk")[0].uuid, Action.Signal.CANCEL, "rosa")
    run_waiting()
    found = Caller(reader, "1.13").get(f"/action_plans/{plan.uuid}").json()
    number = 2 if is_signalled else 1
    assert (found["state"], found["status_message"]) == (state, f"{number} of 2 actions cancelled.")


# The compute mount


def events(user: User, server: Any) -> list[dict[str, Any]]:
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_authenticate(user)
    path = f"/compute/v2.1/servers/{server.uuid}/os-instance-actions/req-1"
    answer = client.get(path, headers={"OpenStack-API-Version": "compute 2.84"})
    found: list[dict[str, Any]] = answer.json()["instanceAction"]["events"]
    return found


def test_owner_of_a_server_sees_event_details_in_the_compute_mount_if_permitted(
    stranger: User, settings: Settings
) -> None:
    server = make_server(node=make_node(), project_id="shop")
    ProjectMember.objects.create(user=stranger, project_id="shop")
    make_operation(server, "stop", "Error", request_id="req-1")
    assert "details" not in events(stranger, server)[0]
    settings.POLICIES = {EVENT_DETAILS: PROJECT_READER}
    assert events(stranger, server)[0]["details"] == "It was Error."


@pytest.mark.parametrize(("result", "shown"), [("Retry", "Error"), ("Waiting", None), ("Skipped", "Success")])
def test_compute_mount_reports_unsuccessful_events_without_success(
    cloud_admin: User, result: str, shown: str | None
) -> None:
    server = make_server(node=make_node(), project_id="shop")
    make_operation(server, "stop", result, request_id="req-1")
    assert events(cloud_admin, server)[0]["result"] == shown


def test_plan_without_a_message_has_no_generic_message(reader: User, settings: Settings) -> None:
    settings.POLICIES = {EVENT_DETAILS: ADMIN}
    plan: ActionPlan = propose([ProposedAction("nop", {"message": "a"})])
    assert Caller(reader, "1.13").get(f"/action_plans/{plan.uuid}").json()["status_message"] is None
