"""Phases of an action, and their effect on its state and events."""

from collections.abc import MutableMapping
from typing import Any

import pytest
from pytest_django import Settings
from structlog.testing import capture_logs

from actions.models import Action
from actions.types.nop import Nop
from cluster.drivers.base import CloudUnavailable
from plans.models import ActionPlan
from tests.builders import make_node, make_plan, make_server
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def run_action(action_type: str = "nop", **input_parameters: object) -> Action:
    plan = make_plan(state="PENDING")
    made = Action.objects.create(action_plan=plan, action_type=action_type, input_parameters=input_parameters)
    run_waiting()
    return Action.objects.get(pk=made.pk)


def phases(action: Action) -> list[tuple[str, str | None]]:
    return list(action.events.values_list("event", "result"))


def test_action_succeeds_after_three_phases() -> None:
    action = run_action(message="hello")
    assert action.state == "SUCCEEDED"
    assert action.status_message is None
    assert phases(action) == [("pre_condition", "Success"), ("execute", "Success"), ("post_condition", "Success")]


def test_each_phase_records_its_times_host_and_attempt() -> None:
    action = run_action(message="hello")
    for event in action.events.all():
        assert event.start_time <= event.finish_time
        assert event.host
    assert list(action.events.values_list("attempt", flat=True)) == [1, 1, 1]


def test_skip_in_pre_condition_omits_execute_and_post_condition() -> None:
    action = run_action(message="x", skip_pre_condition=True, fail_post_condition=True)
    assert action.state == "SKIPPED"
    assert action.status_message == "Action was skipped automatically: Skipped in pre_condition"
    assert phases(action) == [("pre_condition", "Skipped")]


def test_error_in_pre_condition_fails_the_action_before_it_starts() -> None:
    action = run_action(message="x", fail_pre_condition=True)
    assert (action.state, action.attempt) == ("FAILED", 0)
    assert action.status_message == "Action failed in pre_condition: Failed in pre_condition"
    assert phases(action) == [("pre_condition", "Error"), ("post_condition", "Success")]


def test_failed_execute_fails_the_action() -> None:
    action = run_action(message="x", fail_execute=True)
    assert action.state == "FAILED"
    assert action.status_message == f"Action failed in execute: The action {action.uuid} execution failed."


def test_post_condition_is_called_after_a_failed_pre_condition() -> None:
    action = run_action(message="x", fail_pre_condition=True, fail_post_condition=True)
    assert phases(action) == [("pre_condition", "Error"), ("post_condition", "Error")]
    assert (action.state, action.status_message) == (
        "FAILED",
        "Action failed in pre_condition: Failed in pre_condition",
    )


def test_post_condition_is_called_after_a_failed_execute() -> None:
    action = run_action(message="x", fail_execute=True)
    assert phases(action) == [("pre_condition", "Success"), ("execute", "Error"), ("post_condition", "Success")]


def test_message_of_execute_is_kept_if_post_condition_fails_too() -> None:
    action = run_action(message="x", fail_execute=True, fail_post_condition=True)
    assert (action.status_message or "").startswith("Action failed in execute:")


def test_a_failed_post_condition_fails_the_action() -> None:
    action = run_action(message="x", fail_post_condition=True)
    assert action.state == "FAILED"
    assert action.status_message == "Action failed in post_condition: Failed in post_condition"


def test_unknown_action_type_fails_and_is_named() -> None:
    action = run_action("foo")
    assert action.state == "FAILED"
    assert action.status_message == "Action failed in pre_condition: Error loading plugin 'foo'"


@pytest.mark.parametrize(
    ("parameters", "violation"),
    [
        ({"duration": -1}, "duration: -1 is less than the minimum of 0"),
        ({"duration": "long"}, "duration: 'long' is not of type 'number'"),
        ({}, "'duration' is a required property"),
        ({"duration": 1, "depth": 2}, "Additional properties are not allowed ('depth' was unexpected)"),
    ],
)
def test_invalid_parameters_fail_with_the_field_and_the_rule(parameters: dict[str, object], violation: str) -> None:
    action = run_action("sleep", **parameters)
    assert action.state == "FAILED"
    assert action.status_message == f"Action failed in pre_condition: Invalid input parameters: {violation}"


def test_event_contains_the_reason_of_a_failure() -> None:
    action = run_action(message="x", fail_pre_condition=True)
    assert action.events.get(event="pre_condition").details == "Failed in pre_condition"


def test_a_plan_of_only_skipped_actions_succeeds() -> None:
    action = run_action(message="x", skip_pre_condition=True)
    assert ActionPlan.objects.get(pk=action.action_plan_id).state == "SUCCEEDED"


def logged(action_type: str, **input_parameters: object) -> MutableMapping[str, Any]:
    with capture_logs() as lines:
        run_action(action_type, **input_parameters)
    (line,) = [line for line in lines if line["event"] == "action phase failed"]
    return line


def test_log_contains_the_addresses_that_messages_omit(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "The cloud does not answer: Unable to establish connection to http://nova.example.org:8774/v2.1"

    def fail(self: Nop) -> None:
        raise CloudUnavailable(reason)

    monkeypatch.setattr(Nop, "pre_condition", fail)
    assert logged("nop", message="x")["problem"] == reason
    assert "nova.example.org" not in str(Action.objects.get().status_message)


def test_expected_failure_is_logged_without_a_traceback(settings: Settings) -> None:
    settings.EMBEDDED_CLOUD_SECONDS = 0
    node = make_node("too-small", vcpus=1)
    server = make_server(node=make_node("full"), vcpus=8)
    line = logged(
        "migrate",
        migration_type="live",
        resource_id=str(server.uuid),
        source_node="full",
        destination_node=node.hostname,
    )
    assert line["problem"].startswith("No valid host was found.")
    assert line["exc_info"] is None


def test_unexpected_failure_is_logged_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(self: Nop) -> bool:
        raise ZeroDivisionError("in a driver")

    monkeypatch.setattr(Nop, "execute", break_down)
    line = logged("nop", message="hello")
    assert (line["problem"], line["exc_info"].args) == ("ZeroDivisionError", ("in a driver",))
