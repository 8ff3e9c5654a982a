"""Skipping an action by PATCH, compatible with existing clients (docs/compatibility.md, "Skipping")."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from actions.models import Action
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db

SKIP = {"op": "replace", "path": "/state", "value": "SKIPPED"}


def reason(text: object, op: str = "replace") -> dict[str, object]:
    return {"op": op, "path": "/status_message", "value": text}


@pytest.fixture
def plan() -> ActionPlan:
    return make_plan({"a": [], "b": ["a"]})


@pytest.fixture
def path(plan: ActionPlan) -> str:
    return f"/actions/{action(plan, 'a').uuid}"


def make_action(state: str, plan_state: str = "RECOMMENDED", **columns: object) -> Action:
    return Action.objects.create(
        action_plan=make_plan(state=plan_state),
        action_type="nop",
        input_parameters={"message": "x"},
        state=state,
        **columns,
    )


def test_a_pending_action_of_a_recommended_plan_is_skipped(api: Caller, path: str) -> None:
    answer = api.patch(path, [SKIP])
    assert answer.status_code == 200
    assert answer.json()["state"] == "SKIPPED"
    assert answer.json()["status_message"] == "Action skipped by user."


def test_a_pending_action_of_a_pending_plan_is_skipped(api: Caller, plan: ActionPlan, path: str) -> None:
    plan.launch()
    assert api.patch(path, [SKIP]).status_code == 200


@pytest.mark.parametrize("op", ["add", "replace"])
@pytest.mark.parametrize("reason_first", [True, False])
def test_reason_is_stored_in_either_order_of_the_steps(api: Caller, path: str, op: str, reason_first: bool) -> None:
    steps = [SKIP, reason("month-end closing", op)]
    answer = api.patch(path, steps[::-1] if reason_first else steps)
    assert answer.json()["status_message"] == "Action skipped by user. Reason: month-end closing"


@pytest.mark.parametrize("state", ["skipped", "Skipped", "SKIPPED"])
def test_the_state_is_accepted_in_upper_and_lower_case(api: Caller, path: str, state: str) -> None:
    assert api.patch(path, [SKIP | {"value": state}]).json()["state"] == "SKIPPED"


@pytest.mark.parametrize("empty", [None, "", "   "])
def test_empty_reason_is_ignored(api: Caller, path: str, empty: object) -> None:
    assert api.patch(path, [SKIP, reason(empty)]).json()["status_message"] == "Action skipped by user."


def test_user_who_skipped_an_action_is_recorded(api: Caller, plan: ActionPlan, path: str) -> None:
    api.patch(path, [SKIP])
    assert action(plan, "a").skipped_by == "alice"


def test_patch_before_1_5_is_refused_with_the_compatible_message(cloud_admin: User, path: str) -> None:
    answer = Caller(cloud_admin, "1.4").patch(path, [SKIP])
    assert answer.status_code == 400
    assert fault(answer) == "API microversion 1.5 or higher is required."


@pytest.mark.parametrize("state", ["ONGOING", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_skip_is_refused_after_the_plan_started(api: Caller, state: str) -> None:
    pending = make_action("PENDING", plan_state=state)
    answer = api.patch(f"/actions/{pending.uuid}", [SKIP])
    assert answer.status_code == 409
    assert fault(answer) == f"State update not allowed for actionplan state: {state}"


@pytest.mark.parametrize("state", ["ONGOING", "SUCCEEDED", "FAILED", "CANCELLED"])
def test_action_that_is_not_pending_cannot_be_skipped(api: Caller, state: str) -> None:
    answer = api.patch(f"/actions/{make_action(state).uuid}", [SKIP])
    assert answer.status_code == 409
    assert fault(answer) == f"State transition not allowed: ({state} -> SKIPPED)"


@pytest.mark.parametrize("wanted", ["ONGOING", "CANCELLED", "PENDING", "SUCCEEDED"])
def test_request_of_another_state_is_refused(api: Caller, path: str, wanted: str) -> None:
    answer = api.patch(path, [SKIP | {"value": wanted}])
    assert answer.status_code == 409
    assert fault(answer) == f"State transition not allowed: (PENDING -> {wanted})"


def test_skipped_action_cannot_be_skipped_again(api: Caller, path: str) -> None:
    api.patch(path, [SKIP, reason("first")])
    assert api.patch(path, [SKIP]).status_code == 409


def test_the_reason_of_a_skipped_action_may_be_changed(api: Caller, path: str) -> None:
    api.patch(path, [SKIP, reason("first")])
    assert api.patch(path, [reason("second")]).json()["status_message"] == "Action skipped by user. Reason: second"


def test_the_reason_may_be_changed_after_the_plan_has_ended(api: Caller) -> None:
    skipped = make_action(
        "SKIPPED", plan_state="SUCCEEDED", skipped_by="alice", status_message="Action skipped by user."
    )
    answer = api.patch(f"/actions/{skipped.uuid}", [reason("late words")])
    assert answer.json()["status_message"] == "Action skipped by user. Reason: late words"


def test_sending_the_stored_message_back_does_not_repeat_its_prefix(api: Caller, path: str) -> None:
    stored = api.patch(path, [SKIP, reason("month-end")]).json()["status_message"]
    assert api.patch(path, [reason(stored)]).json()["status_message"] == stored


def test_reason_is_appended_as_a_note_to_the_finding_of_an_automatic_skip(api: Caller) -> None:
    finding = "Action was skipped automatically: Instance x not found"
    skipped = make_action("SKIPPED", plan_state="SUCCEEDED", status_message=finding)
    answer = api.patch(f"/actions/{skipped.uuid}", [reason("known")])
    assert answer.json()["status_message"] == f"{finding} Note: known"
    again = api.patch(f"/actions/{skipped.uuid}", [reason(f"{finding} Note: well known")])
    assert again.json()["status_message"] == f"{finding} Note: well known"


def test_reason_alone_requires_a_skipped_action(api: Caller, path: str) -> None:
    answer = api.patch(path, [reason("why not")])
    assert answer.status_code == 409
    assert fault(answer) == "status_message update only allowed when action state is SKIPPED"


def test_an_empty_patch_changes_nothing(api: Caller, plan: ActionPlan, path: str) -> None:
    answer = api.patch(path, [])
    assert answer.status_code == 200
    assert action(plan, "a").updated_at is None


def test_reason_of_maximum_length_is_stored_whole(api: Caller, path: str) -> None:
    longest = "x" * (255 - len("Action skipped by user. Reason: "))
    assert api.patch(path, [SKIP, reason(longest)]).json()["status_message"].endswith(longest)


def test_too_long_reason_is_refused_and_the_action_stays_pending(api: Caller, plan: ActionPlan, path: str) -> None:
    answer = api.patch(path, [SKIP, reason("x" * 224)])
    assert answer.status_code == 400
    assert "status_message" in fault(answer)
    assert "223" in fault(answer)
    assert action(plan, "a").state == "PENDING"


@pytest.mark.parametrize(
    "document",
    [
        {"op": "replace"},
        "SKIPPED",
        [1],
        [{"path": "/state", "value": "SKIPPED"}],
        [{"op": "replace", "value": "SKIPPED"}],
        [{"op": "replace", "path": "/state"}],
        [{"op": "test", "path": "/state", "value": "PENDING"}],
        [{"op": "replace", "path": "state", "value": "SKIPPED"}],
        [{"op": "replace", "path": "/uuid", "value": "SKIPPED"}],
        [{"op": "replace", "path": "/action_type", "value": "migrate"}],
        [{"op": "remove", "path": "/state"}],
        [{"op": "remove", "path": "/status_message"}],
        [SKIP | {"value": "FOO"}],
        [SKIP | {"value": 7}],
        [SKIP | {"from": "/state"}],
        [SKIP, reason(7)],
        [SKIP, reason(["a"])],
    ],
)
def test_a_malformed_patch_is_400_and_changes_nothing(
    api: Caller, plan: ActionPlan, path: str, document: object
) -> None:
    answer = api.patch(path, document)
    assert answer.status_code == 400
    assert fault(answer)
    assert action(plan, "a").state == "PENDING"


def test_an_unknown_action_is_404(api: Caller) -> None:
    answer = api.patch(f"/actions/{uuid4()}", [SKIP])
    assert answer.status_code == 404
    assert "could not be found" in fault(answer)


def test_id_that_is_not_a_uuid_is_400(api: Caller) -> None:
    assert api.patch("/actions/first", [SKIP]).status_code == 400


def test_reader_cannot_skip(reader: User, plan: ActionPlan, path: str) -> None:
    answer = Caller(reader).patch(path, [SKIP])
    assert answer.status_code == 403
    assert fault(answer) == "Policy doesn't allow action:update to be performed."
    assert action(plan, "a").state == "PENDING"


def test_long_finding_of_an_automatic_skip_is_cut_to_fit_the_note(api: Caller) -> None:
    finding = "Action was skipped automatically: " + "x" * (255 - len("Action was skipped automatically: "))
    skipped = make_action("SKIPPED", plan_state="SUCCEEDED", status_message=finding)
    answer = api.patch(f"/actions/{skipped.uuid}", [reason("known since Friday")])
    assert answer.json()["status_message"].startswith("Action was skipped automatically:")
    assert answer.json()["status_message"].endswith(" Note: known since Friday")


def test_finding_that_contains_the_word_note_is_kept_whole(api: Caller) -> None:
    finding = "Action was skipped automatically: see Note: 5"
    skipped = make_action("SKIPPED", plan_state="SUCCEEDED", status_message=finding)
    answers = [api.patch(f"/actions/{skipped.uuid}", [reason(words)]).json() for words in ("first", "second")]
    assert answers[-1]["status_message"] == f"{finding} Note: second"


@pytest.mark.parametrize("name", ["uuid", "created_at", "parents", "foo"])
def test_patch_of_another_attribute_is_refused_with_the_compatible_message(api: Caller, path: str, name: str) -> None:
    answer = api.patch(path, [{"op": "replace", "path": f"/{name}", "value": "x"}])
    assert (answer.status_code, fault(answer)) == (
        400,
        f"'/{name}' is not an allowed attribute and can not be updated",
    )
