"""``POST`` of a ``signal`` to an action or to a plan: versions, permissions, messages, responses, older versions."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User

from actions.models import Action
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import make_plan
from tests.plans.applier.test_commits import counted

pytestmark = pytest.mark.django_db
NONE_OF_THEM = "Invalid input for field/attribute signal. It must be one of CANCEL, SUSPEND, RESUME."


@pytest.fixture
def newest(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


def make_action(state: str = "ONGOING", **columns: Any) -> Action:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state=state, **columns)
    return plan.actions.get()


def set_permissions(user: User, *names: str) -> None:
    user.user_permissions.set(Permission.objects.filter(codename__in=names))


def test_signal_to_an_action_returns_the_action(newest: Caller) -> None:
    one = make_action()
    answer = newest.post(f"/actions/{one.uuid}/signal", {"signal": "SUSPEND"})
    assert answer.status_code == 202
    assert (answer.json()["status"], answer.json()["control"]) == ("RUNNING", "SUSPEND")


def test_signal_to_a_plan_returns_the_plan(newest: Caller) -> None:
    one = make_action()
    answer = newest.post(f"/action_plans/{one.action_plan.uuid}/signal", {"signal": "SUSPEND"})
    assert answer.status_code == 202
    assert (answer.json()["state"], answer.json()["suspended_by"]) == ("ONGOING", "alice")
    assert Action.objects.get().control == "SUSPEND"
    answer = newest.post(f"/action_plans/{one.action_plan.uuid}/signal", {"signal": "RESUME"})
    assert (answer.json()["suspended_by"], Action.objects.get().control) == (None, None)
    answer = newest.post(f"/action_plans/{one.action_plan.uuid}/signal", {"signal": "CANCEL"})
    assert answer.json()["state"] == "CANCELLING"


def test_signal_finds_an_action_by_its_name(newest: Caller) -> None:
    assert newest.post(f"/actions/{make_action().name}/signal", {"signal": "CANCEL"}).status_code == 202


@pytest.mark.parametrize("of", ["actions", "action_plans"])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"signal": "STOP"}, "Invalid input for field/attribute signal. It must be one of CANCEL, SUSPEND, RESUME."),
        (
            {"signal": ["CANCEL"]},
            "Invalid input for field/attribute signal. It must be one of CANCEL, SUSPEND, RESUME.",
        ),
        ({}, "Invalid input for field/attribute signal. Value: 'None'. Mandatory field missing."),
        ({"signal": "CANCEL", "force": True}, "Unknown attribute for argument signal: force"),
        (["CANCEL"], "Invalid input for field/attribute signal. An object is expected."),
    ],
)
def test_body_without_a_valid_signal_is_refused(newest: Caller, of: str, body: Any, words: str) -> None:
    one = make_action()
    uuid = one.uuid if of == "actions" else one.action_plan.uuid
    answer = newest.post(f"/{of}/{uuid}/signal", body)
    assert (answer.status_code, fault(answer)) == (400, words)


def test_signal_to_an_action_in_a_wrong_status_is_a_conflict(newest: Caller) -> None:
    one = make_action("SUCCEEDED")
    answer = newest.post(f"/actions/{one.uuid}/signal", {"signal": "RESUME"})
    assert answer.status_code == 409
    assert "is in status (SUCCEEDED) while expected status must be one of (SUSPENDED)." in fault(answer)


@pytest.mark.parametrize(
    ("state", "signal", "words"),
    [
        (
            "RECOMMENDED",
            "SUSPEND",
            "is in state (RECOMMENDED) while expected state must be one of (PENDING, ONGOING).",
        ),
        ("SUCCEEDED", "RESUME", "is in state (SUCCEEDED) while expected state must be one of (PENDING, ONGOING)."),
        (
            "SUCCEEDED",
            "CANCEL",
            "is in state (SUCCEEDED) while expected state must be one of (RECOMMENDED, PENDING, ONGOING).",
        ),
    ],
)
def test_signal_to_a_plan_in_a_wrong_state_is_a_conflict(newest: Caller, state: str, signal: str, words: str) -> None:
    plan = make_plan({"a": []}, state=state)
    answer = newest.post(f"/action_plans/{plan.uuid}/signal", {"signal": signal})
    assert (answer.status_code, fault(answer)) == (409, f"ActionPlan ({plan.uuid}) {words}")


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_repeated_suspend_and_resume_of_a_plan_are_accepted(newest: Caller, state: str) -> None:
    plan = make_plan({"a": []}, state=state)
    for signal in ("SUSPEND", "RESUME"):
        answers = [newest.post(f"/action_plans/{plan.uuid}/signal", {"signal": signal}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [202, 202]
    assert not ActionPlan.objects.get().is_suspended


@pytest.mark.parametrize("of", ["actions", "action_plans"])
def test_signal_is_406_before_1_12(cloud_admin: User, of: str) -> None:
    one = make_action()
    uuid = one.uuid if of == "actions" else one.action_plan.uuid
    assert Caller(cloud_admin, "1.11").post(f"/{of}/{uuid}/signal", {"signal": "CANCEL"}).status_code == 406


@pytest.mark.parametrize("of", ["actions", "action_plans"])
def test_reader_cannot_signal(reader: User, of: str) -> None:
    one = make_action()
    uuid = one.uuid if of == "actions" else one.action_plan.uuid
    answer = Caller(reader, "1.12").post(f"/{of}/{uuid}/signal", {"signal": "CANCEL"})
    assert answer.status_code == 403
    assert Action.objects.get().control is None


def test_signal_permission_does_not_include_cancelling_plans(stranger: User) -> None:
    set_permissions(stranger, "signal_action")
    plan, caller = make_action().action_plan, Caller(stranger, "1.12")
    assert caller.post(f"/action_plans/{plan.uuid}/signal", {"signal": "SUSPEND"}).status_code == 202
    assert caller.post(f"/action_plans/{plan.uuid}/signal", {"signal": "CANCEL"}).status_code == 403


@pytest.mark.parametrize("of", ["actions", "action_plans"])
def test_signal_to_an_unknown_object_is_404(newest: Caller, of: str) -> None:
    answer = newest.post(f"/{of}/7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11/signal", {"signal": "CANCEL"})
    assert answer.status_code == 404


def test_plan_signal_query_count_does_not_depend_on_the_number_of_actions(newest: Caller) -> None:
    costs = []
    for size in (1, 2, 20):
        plan = make_plan({str(number): [] for number in range(size)}, state="ONGOING")
        plan.actions.update(state="ONGOING")
        with counted() as statements:
            newest.post(f"/action_plans/{plan.uuid}/signal", {"signal": "SUSPEND"})
        costs.append(len(statements))
    # The first request also fills the caches of the process.
    assert costs[1] == costs[2]
    assert ActionPlan.objects.filter(actions__control="SUSPEND").count() == 23


# Responses at versions before 1.12, which do not have the state.


@pytest.mark.parametrize(("version", "state"), [("1.0", "ONGOING"), ("1.11", "ONGOING"), ("1.12", "SUSPENDED")])
def test_suspended_state_is_shown_as_ongoing_before_1_12(cloud_admin: User, version: str, state: str) -> None:
    one, caller = make_action("SUSPENDED"), Caller(cloud_admin, version)
    assert caller.get(f"/actions/{one.uuid}").json()["state"] == state
    assert [row["state"] for row in caller.get("/actions").json()["actions"]] == [state]
    assert [row["state"] for row in caller.get("/actions/detail").json()["actions"]] == [state]


@pytest.mark.parametrize(("version", "state"), [("1.5", "ONGOING"), ("1.11", "ONGOING"), ("1.12", "SUSPENDED")])
@pytest.mark.parametrize("wanted", ["SKIPPED", "FAILED"])
def test_conflict_message_shows_suspended_as_ongoing_before_1_12(
    cloud_admin: User, version: str, state: str, wanted: str
) -> None:
    patch = [{"op": "replace", "path": "/state", "value": wanted}]
    answer = Caller(cloud_admin, version).patch(f"/actions/{make_action('SUSPENDED').uuid}", patch)
    assert answer.status_code == 409
    assert f"({state} -> {wanted})" in fault(answer)


def make_actions_in_mixed_states() -> None:
    plan = make_plan({name: [] for name in "abcdef"}, state="ONGOING")
    states = ("SUSPENDED", "PENDING", "ONGOING", "SUSPENDED", "SUCCEEDED", "ONGOING")
    for one, state in zip(plan.actions.order_by("pk"), states, strict=True):
        Action.objects.filter(pk=one.pk).update(state=state)


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_pages_sort_suspended_actions_as_ongoing_before_1_12(cloud_admin: User, direction: str) -> None:
    make_actions_in_mixed_states()
    caller, found, marker = Caller(cloud_admin, "1.11"), [], ""
    while page := caller.get(f"/actions?sort_key=state&sort_dir={direction}&limit=1{marker}").json()["actions"]:
        found += page
        marker = f"&marker={page[0]['uuid']}"
    states = [row["state"] for row in found]
    assert states == sorted(states, reverse=direction == "desc")
    assert len({row["uuid"] for row in found}) == 6


def test_suspended_actions_are_sorted_and_filtered_by_their_state_since_1_12(newest: Caller) -> None:
    make_actions_in_mixed_states()
    states = [row["state"] for row in newest.get("/actions?sort_key=state").json()["actions"]]
    assert states == sorted(states)
    suspended = newest.get("/actions?status=SUSPENDED").json()["actions"]
    assert [row["status"] for row in suspended] == ["SUSPENDED", "SUSPENDED"]


def test_openapi_document_omits_the_suspended_state_before_1_12(newest: Caller) -> None:
    assert "SUSPENDED" in str(newest.get("/openapi.json?version=1.12").json()["components"]["schemas"]["Action"])
    assert "SUSPENDED" not in str(newest.get("/openapi.json?version=1.11").json()["components"]["schemas"]["Action"])


def test_details_of_a_signal_event_name_the_user(newest: Caller, reader: User, cloud_admin: User) -> None:
    one = make_action()
    newest.post(f"/actions/{one.uuid}/signal", {"signal": "SUSPEND"})
    for caller in (newest, Caller(reader, "1.9")):
        [event] = caller.get(f"/actions/{one.uuid}/events").json()["events"]
        assert (event["event"], event["details"]) == ("signal_suspend", "Requested by alice.")
    [event] = Caller(cloud_admin, "1.8").get(f"/actions/{one.uuid}/events").json()["events"]
    assert "details" not in event
