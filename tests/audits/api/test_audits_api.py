"""Audits in the API: create, read, cancel, change, delete and filter."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from audits.models import Audit
from tests.api import Caller, fault
from tests.builders import make_audit, make_plan

pytestmark = pytest.mark.django_db

DUMMY = {"audit_type": "ONESHOT", "goal": "dummy", "strategy": "dummy"}


def cancel(op: str = "replace", value: object = "CANCELLED") -> list[dict[str, object]]:
    return [{"op": op, "path": "/state", "value": value}]


def test_created_audit_is_pending_and_its_location_is_returned(api: Caller) -> None:
    answer = api.post("/audits", DUMMY | {"name": "mine"})
    assert answer.status_code == 201
    shown = answer.json()
    assert (shown["state"], shown["name"], shown["goal_name"]) == ("PENDING", "mine", "dummy")
    assert answer["Location"] == f"http://testserver/v1/audits/{shown['uuid']}"


def test_strategy_defaults_are_added_to_the_parameters(api: Caller) -> None:
    assert api.post("/audits", DUMMY).json()["parameters"] == {"para1": 3.2, "para2": "hello"}


@pytest.mark.parametrize("identifier", ["id", "uuid", "name", "NAME", "uuid.json"])
def test_audit_is_found_by_id_uuid_or_name(api: Caller, identifier: str) -> None:
    audit = make_audit("nightly")
    names = {
        "id": audit.pk,
        "uuid": audit.uuid,
        "name": "nightly",
        "NAME": "NIGHTLY",
        "uuid.json": f"{audit.uuid}.json",
    }
    assert api.get(f"/audits/{names[identifier]}").json()["uuid"] == str(audit.uuid)


@pytest.mark.parametrize(
    ("version", "absent"),
    [
        ("1.0", {"start_time", "end_time", "force", "status_message"}),
        ("1.1", {"force", "status_message"}),
        ("1.4", {"status_message"}),
        ("1.5", set()),
    ],
)
def test_fields_are_absent_before_their_microversion(cloud_admin: User, version: str, absent: set[str]) -> None:
    make_audit()
    shown = set(Caller(cloud_admin, version).get("/audits/detail").json()["audits"][0])
    assert {"start_time", "end_time", "force", "status_message"} - shown == absent


@pytest.mark.parametrize("field", ["start_time", "end_time"])
def test_creation_with_times_before_1_1_is_not_acceptable(cloud_admin: User, field: str) -> None:
    answer = Caller(cloud_admin, "1.0").post("/audits", DUMMY | {field: "2030-01-01T00:00:00"})
    assert answer.status_code == 406
    assert "OpenStack-API-Maximum-Version" in answer


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 400, "audit_type"),
        (DUMMY | {"audit_type": "oneshot"}, 400, "Audit type oneshot could not be found"),
        ({"audit_type": "ONESHOT"}, 400, "A valid goal or audit_template_id must be provided"),
        (DUMMY | {"interval": "10"}, 400, "Interval of audit must not be set for ONESHOT."),
        (DUMMY | {"interval": 10}, 400, "interval"),
        (DUMMY | {"audit_type": "CONTINUOUS"}, 400, "Interval of audit must be specified for CONTINUOUS."),
        (DUMMY | {"audit_type": "CONTINUOUS", "interval": "0"}, 400, "interval: must be from 1 to"),
        (DUMMY | {"audit_type": "CONTINUOUS", "interval": "* * *"}, 400, "nor a cron expression"),
        (DUMMY | {"audit_type": "EVENT", "end_time": "2020-01-01"}, 400, "end_time: must not be in the past."),
        (DUMMY | {"goal": "nope"}, 404, "Goal nope could not be found"),
        (DUMMY | {"strategy": "nope"}, 404, "Strategy nope could not be found"),
        (DUMMY | {"strategy": "actuator"}, 400, "actuator"),
        (DUMMY | {"parameters": {"para1": 99}}, 400, "Invalid parameters for strategy"),
        (DUMMY | {"parameters": {"zz": 1}}, 400, "Audit parameter zz are not allowed"),
        (DUMMY | {"parameters": [1]}, 400, "parameters"),
        (DUMMY | {"name": 7}, 400, "name"),
        (DUMMY | {"name": "a\0b"}, 400, "NUL"),
        (DUMMY | {"force": "perhaps"}, 400, "force"),
        (DUMMY | {"state": "SUCCEEDED"}, 400, "Cannot set read only field."),
        (DUMMY | {"foo": 1}, 400, "Unknown attribute for argument audit_p: foo"),
        ([DUMMY], 400, "audit_p"),
        ("text", 400, "audit_p"),
    ],
)
def test_invalid_body_is_refused_and_creates_no_audit(api: Caller, body: Any, status: int, words: str) -> None:
    answer = api.post("/audits", body)
    assert (answer.status_code, words in fault(answer)) == (status, True), fault(answer)
    assert not Audit.objects.exists()


def test_duplicate_name_in_another_case_is_a_conflict(api: Caller) -> None:
    api.post("/audits", DUMMY | {"name": "mine"})
    answer = api.post("/audits", DUMMY | {"name": "MINE"})
    assert answer.status_code == 409


def test_emoji_in_a_name_is_accepted(api: Caller) -> None:
    assert api.post("/audits", DUMMY | {"name": "🐘 audit"}).json()["name"] == "🐘 audit"


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_pending_or_ongoing_audit_is_cancelled(api: Caller, state: str) -> None:
    audit = make_audit(state=state)
    answer = api.patch(f"/audits/{audit.uuid}", cancel())
    assert answer.json()["state"] == "CANCELLED"
    assert answer.json()["status_message"] == "Audit was canceled by user"


@pytest.mark.parametrize("requested", ["PENDING", "SUCCEEDED", "DELETED", "FOO", 7, None])
@pytest.mark.parametrize("op", ["add", "replace"])
def test_patch_to_a_state_other_than_cancelled_is_refused(api: Caller, op: str, requested: object) -> None:
    audit = make_audit()
    answer = api.patch(f"/audits/{audit.uuid}", cancel(op, requested))
    assert answer.status_code == 400
    assert f"State transition not allowed: (PENDING -> {requested})" in fault(answer)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"op": "replace", "path": "/uuid", "value": "x"}, "internal"),
        ({"op": "replace", "path": "/status_message", "value": "x"}, "internal"),
        ({"op": "replace", "path": "/type", "value": "x"}, "/type can't be updated."),
        ({"op": "replace", "path": "/audit_type", "value": "EVENT"}, "can't be updated."),
        ({"op": "replace", "path": "/parameters/para1", "value": 99}, "para1"),
        ({"op": "add", "path": "/parameters/zz", "value": 99}, "zz"),
        ({"op": "replace", "path": "/name", "value": ""}, "name"),
        ({"op": "replace", "path": "/force", "value": 1}, "force"),
        ({"op": "add", "path": "/foo", "value": 1}, "/foo"),
        ({"op": "remove", "path": "/foo"}, "foo"),
        ({"op": "remove", "path": "/state"}, "mandatory"),
    ],
)
def test_invalid_patch_is_400(api: Caller, step: dict[str, object], words: str) -> None:
    audit = make_audit(parameters={"para1": 3.2, "para2": "hello"})
    answer = api.patch(f"/audits/{audit.uuid}", [step])
    assert answer.status_code == 400
    assert words in fault(answer)


def test_parameters_and_name_of_a_pending_audit_are_changed(api: Caller) -> None:
    audit = make_audit(parameters={"para1": 3.2, "para2": "hello"})
    steps = [
        {"op": "replace", "path": "/parameters/para1", "value": 5},
        {"op": "replace", "path": "/name", "value": "renamed"},
    ]
    shown = api.patch(f"/audits/{audit.uuid}", steps).json()
    assert (shown["parameters"]["para1"], shown["name"]) == (5, "renamed")


def test_patch_to_a_duplicate_name_is_a_conflict(api: Caller) -> None:
    make_audit("taken")
    audit = make_audit("other")
    answer = api.patch(f"/audits/{audit.uuid}", [{"op": "replace", "path": "/name", "value": "Taken"}])
    assert answer.status_code == 409


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_deletion_of_an_unfinished_audit_is_refused(api: Caller, state: str) -> None:
    answer = api.delete(f"/audits/{make_audit(state=state).uuid}")
    assert answer.status_code == 400
    assert fault(answer) == f"Couldn't delete when state is '{state}'."


def test_plan_of_a_deleted_audit_is_kept_without_audit_uuid(api: Caller) -> None:
    plan = make_plan(audit=make_audit(state="SUCCEEDED"))
    assert api.delete(f"/audits/{plan.audit.uuid}").status_code == 204
    assert api.get(f"/audits/{plan.audit.uuid}").status_code == 404
    assert api.get(f"/action_plans/{plan.uuid}").json()["audit_uuid"] is None


def test_plan_list_is_filtered_by_the_uuid_of_a_deleted_audit(api: Caller) -> None:
    plan = make_plan({"a": []}, audit=make_audit(state="SUCCEEDED"))
    make_plan(audit=make_audit("another", state="SUCCEEDED"))
    api.delete(f"/audits/{plan.audit.uuid}")
    [listed] = api.get(f"/action_plans/?audit_uuid={plan.audit.uuid}").json()["action_plans"]
    assert (listed["uuid"], listed["state"], listed["audit_uuid"]) == (str(plan.uuid), "RECOMMENDED", None)


def test_reader_cannot_create_an_audit(reader: User) -> None:
    assert Caller(reader).post("/audits", DUMMY).status_code == 403
    assert not Audit.objects.exists()


def test_audit_list_is_filtered_by_goal_and_strategy(api: Caller) -> None:
    audit = make_audit()
    assert [row["uuid"] for row in api.get("/audits/?goal=DUMMY&strategy=dummy").json()["audits"]] == [str(audit.uuid)]
    assert api.get("/audits/?goal=nope").json()["audits"] == []


@pytest.mark.parametrize("argument", ["state=PENDING", "audit_template=x"])
def test_unknown_filter_is_refused(api: Caller, argument: str) -> None:
    assert api.get(f"/audits/?{argument}").status_code == 400


@pytest.mark.parametrize(("value", "flag"), [("yes", True), ("No", False), (1, True), (0, False), (True, True)])
def test_up_to_1_7_text_and_number_are_accepted_as_boolean_of_a_new_audit(
    cloud_admin: User, value: object, flag: bool
) -> None:
    body = {"audit_type": "ONESHOT", "goal": "dummy", "auto_trigger": value, "force": value}
    answer = Caller(cloud_admin, "1.7").post("/audits", body)
    assert (answer.status_code, answer.json()["auto_trigger"], answer.json()["force"]) == (201, flag, flag)


@pytest.mark.parametrize("name", ["auto_trigger", "force"])
@pytest.mark.parametrize(
    ("version", "value"), [("1.8", "yes"), ("1.8", 1), ("latest", "true"), ("1.7", "maybe"), ("1.7", 2), ("1.7", [])]
)
def test_invalid_boolean_of_a_new_audit_is_refused(cloud_admin: User, version: str, name: str, value: object) -> None:
    answer = Caller(cloud_admin, version).post("/audits", {"audit_type": "ONESHOT", "goal": "dummy", name: value})
    assert answer.status_code == 400
    assert f"{name}. Must be a valid boolean" in fault(answer)
