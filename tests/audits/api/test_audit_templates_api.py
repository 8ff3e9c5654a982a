"""Audit templates through the API. What makes sense in one is tested with the verbs."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from audits.models import AuditTemplate
from tests.api import Caller, fault

pytestmark = pytest.mark.django_db

NIGHTLY = {"name": "nightly", "goal": "dummy", "strategy": "dummy"}


def test_a_template_is_created_shown_and_deleted(api: Caller) -> None:
    made = api.post("/audit_templates", NIGHTLY | {"description": "each night", "default_parameters": {"para1": 2}})
    assert made.status_code == 201
    shown = api.get("/audit_templates/NIGHTLY").json()
    assert (shown["goal_name"], shown["strategy_name"], shown["scope"]) == ("dummy", "dummy", [])
    assert shown["default_parameters"] == {"para1": 2}
    assert api.delete("/audit_templates/nightly").status_code == 204
    assert api.get("/audit_templates/nightly").status_code == 404


def test_the_name_of_a_deleted_template_can_be_used_again(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY)
    api.delete("/audit_templates/nightly")
    assert api.post("/audit_templates", NIGHTLY).status_code == 201


def test_before_1_7_there_are_no_default_parameters(cloud_admin: User) -> None:
    old = Caller(cloud_admin, "1.6")
    assert old.post("/audit_templates", NIGHTLY | {"default_parameters": {}}).status_code == 406
    assert "default_parameters" not in old.post("/audit_templates", NIGHTLY).json()
    patch = [{"op": "replace", "path": "/default_parameters", "value": {}}]
    assert old.patch("/audit_templates/nightly", patch).status_code == 406


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"goal": "dummy"}, 400, "name. Value: 'None'. Mandatory field missing."),
        ({"name": None, "goal": "dummy"}, 400, "name"),
        ({"name": "x"}, 400, "goal. Value: 'None'. Mandatory field missing."),
        (NIGHTLY | {"goal": "nope"}, 400, "Goal nope is invalid"),
        (NIGHTLY | {"strategy": "nope"}, 400, "Strategy nope is invalid"),
        (NIGHTLY | {"strategy": "actuator"}, 400, "'actuator' strategy does relate to the 'dummy' goal"),
        (NIGHTLY | {"scope": "all"}, 400, "scope"),
        (NIGHTLY | {"scope": [{"compute": [{"foo": []}]}]}, 400, "scope"),
        (NIGHTLY | {"name": "x" * 64}, 400, "name"),
        (NIGHTLY | {"default_parameters": {"zz": 1}}, 400, "Audit parameter zz are not allowed"),
        (NIGHTLY | {"foo": 1}, 400, "Unknown attribute for argument audit_template_postdata: foo"),
        (NIGHTLY | {"uuid": "x"}, 400, "read only"),
        ([], 400, "audit_template_postdata"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_and_nothing_is_written(
    api: Caller, body: Any, status: int, words: str
) -> None:
    answer = api.post("/audit_templates", body)
    assert (answer.status_code, words in fault(answer)) == (status, True), fault(answer)
    assert not AuditTemplate.objects.exists()


def test_a_name_is_given_once(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY)
    answer = api.post("/audit_templates", NIGHTLY)
    assert answer.status_code == 409
    assert fault(answer) == "An audit_template with UUID or name nightly already exists"


def test_a_patch_changes_what_it_names(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY)
    steps = [
        {"op": "replace", "path": "/name", "value": "weekly"},
        {"op": "remove", "path": "/strategy"},
        {"op": "add", "path": "/description", "value": "each week"},
    ]
    shown = api.patch("/audit_templates/nightly", steps).json()
    assert (shown["name"], shown["strategy_name"], shown["description"]) == ("weekly", None, "each week")


def test_a_goal_with_default_parameters_changes_with_them_only(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY | {"default_parameters": {"para1": 2}})
    answer = api.patch("/audit_templates/nightly", [{"op": "remove", "path": "/strategy"}])
    assert answer.status_code == 409


@pytest.mark.parametrize(
    "step",
    [
        {"op": "remove", "path": "/goal"},
        {"op": "remove", "path": "/name"},
        {"op": "replace", "path": "/goal", "value": "nope"},
        {"op": "replace", "path": "/goal", "value": ["x"]},
        {"op": "replace", "path": "/name", "value": None},
        {"op": "replace", "path": "/uuid", "value": "x"},
        {"op": "replace", "path": "/scope", "value": {}},
        {"op": "add", "path": "/foo", "value": 1},
    ],
)
def test_a_patch_that_makes_no_sense_is_400(api: Caller, step: dict[str, Any]) -> None:
    api.post("/audit_templates", NIGHTLY)
    answer = api.patch("/audit_templates/nightly", [step])
    assert answer.status_code == 400
    assert fault(answer)


def test_an_empty_patch_changes_nothing(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY)
    assert api.patch("/audit_templates/nightly", []).json()["updated_at"] is None
