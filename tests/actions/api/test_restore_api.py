"""Restoring a skipped action by PATCH (docs/compatibility.md, "Action states")."""

import pytest
from django.contrib.auth.models import User

from actions.models import Action
from actions.operations.skipping import skip_action
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db

RESTORE = [{"op": "replace", "path": "/state", "value": "PENDING"}]


@pytest.fixture
def newest(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def skipped() -> Action:
    return skip_action(action(make_plan({"a": []}), "a").uuid, "alice", "closing")


def set_plan_state(one: Action, state: str) -> None:
    ActionPlan.objects.filter(pk=one.action_plan_id).update(state=state)


@pytest.mark.parametrize("plan_state", ["RECOMMENDED", "PENDING"])
def test_action_skipped_by_a_user_becomes_pending(newest: Caller, skipped: Action, plan_state: str) -> None:
    set_plan_state(skipped, plan_state)
    answer = newest.patch(f"/actions/{skipped.uuid}", RESTORE)
    assert (answer.status_code, answer.json()["state"], answer.json()["status_message"]) == (200, "PENDING", None)


def test_restoring_clears_skipped_by_and_the_reason(newest: Caller, skipped: Action) -> None:
    newest.patch(f"/actions/{skipped.uuid}", RESTORE)
    current = Action.objects.get()
    assert (current.skipped_by, current.reason) == (None, "")


def test_restored_action_can_be_skipped_again(newest: Caller, skipped: Action) -> None:
    newest.patch(f"/actions/{skipped.uuid}", RESTORE)
    again = [{"op": "replace", "path": "/state", "value": "SKIPPED"}]
    assert newest.patch(f"/actions/{skipped.uuid}", again).json()["state"] == "SKIPPED"


@pytest.mark.parametrize("plan_state", ["ONGOING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_restoring_is_refused_after_the_plan_started(newest: Caller, skipped: Action, plan_state: str) -> None:
    set_plan_state(skipped, plan_state)
    answer = newest.patch(f"/actions/{skipped.uuid}", RESTORE)
    assert (answer.status_code, fault(answer)) == (409, f"State update not allowed for actionplan state: {plan_state}")


def test_automatically_skipped_action_cannot_be_restored(newest: Caller) -> None:
    one = action(make_plan({"a": []}), "a")
    one.skip_automatically("the server is gone")
    one.save_state()
    answer = newest.patch(f"/actions/{one.uuid}", RESTORE)
    assert (answer.status_code, Action.objects.get().state) == (409, "SKIPPED")
    assert "skipped automatically" in fault(answer)


def test_pending_action_cannot_be_restored(newest: Caller) -> None:
    one = action(make_plan({"a": []}), "a")
    answer = newest.patch(f"/actions/{one.uuid}", RESTORE)
    assert (answer.status_code, fault(answer)) == (409, "State transition not allowed: (PENDING -> PENDING)")


def test_restoring_with_a_reason_is_refused(newest: Caller, skipped: Action) -> None:
    words = {"op": "add", "path": "/status_message", "value": "after all"}
    answer = newest.patch(f"/actions/{skipped.uuid}", [*RESTORE, words])
    assert (answer.status_code, Action.objects.get().state) == (400, "SKIPPED")


def test_restoring_before_1_12_is_refused_with_the_compatible_message(cloud_admin: User, skipped: Action) -> None:
    answer = Caller(cloud_admin, "1.11").patch(f"/actions/{skipped.uuid}", RESTORE)
    assert (answer.status_code, fault(answer)) == (409, "State transition not allowed: (SKIPPED -> PENDING)")


def test_reader_cannot_restore(reader: User, skipped: Action) -> None:
    assert Caller(reader, "1.12").patch(f"/actions/{skipped.uuid}", RESTORE).status_code == 403
