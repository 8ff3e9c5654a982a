"""Audit templates in the API. The checks of their fields are tested in ``operations/test_audit_templates.py``."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from audits.models import AuditTemplate
from tests.api import Caller, fault

pytestmark = pytest.mark.django_db

NIGHTLY = {"name": "nightly", "goal": "dummy", "strategy": "dummy"}


def test_audit_template_is_created_shown_and_deleted(api: Caller) -> None:
    made = api.post("/audit_templates", NIGHTLY | {"description": "each night", "default_parameters": {"para1": 2}})
    assert made.status_code == 201
    shown = api.get("/audit_templates/NIGHTLY").json()
    assert (shown["goal_name"], shown["strategy_name"], shown["scope"]) == ("dummy", "dummy", [])
    assert shown["default_parameters"] == {"para1": 2}
    assert api.delete("/audit_templates/nightly").status_code == 204
    assert api.get("/audit_templates/nightly").status_code == 404


def test_name_of_a_deleted_template_is_free(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY)
    api.delete("/audit_templates/nightly")
    assert api.post("/audit_templates", NIGHTLY).status_code == 201


def test_default_parameters_are_absent_and_not_acceptable_before_1_7(cloud_admin: User) -> None:
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
def test_invalid_body_is_refused_and_creates_no_template(api: Caller, body: Any, status: int, words: str) -> None:
    answer = api.post("/audit_templates", body)
    assert (answer.status_code, words in fault(answer)) == (status, True), fault(answer)
    assert not AuditTemplate.objects.exists()


def test_duplicate_name_is_a_conflict(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY)
    answer = api.post("/audit_templates", NIGHTLY)
    assert answer.status_code == 409
    assert fault(answer) == "An audit_template with UUID or name nightly already exists"


def test_patch_changes_the_given_fields(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY)
    steps = [
        {"op": "replace", "path": "/name", "value": "weekly"},
        {"op": "remove", "path": "/strategy"},
        {"op": "add", "path": "/description", "value": "each week"},
    ]
    shown = api.patch("/audit_templates/nightly", steps).json()
    assert (shown["name"], shown["strategy_name"], shown["description"]) == ("weekly", None, "each week")


def test_removing_the_strategy_without_its_default_parameters_is_a_conflict(api: Caller) -> None:
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
def test_invalid_patch_is_400(api: Caller, step: dict[str, Any]) -> None:
    api.post("/audit_templates", NIGHTLY)
    answer = api.patch("/audit_templates/nightly", [step])
    assert answer.status_code == 400
    assert fault(answer)


def test_empty_patch_does_not_update_the_template(api: Caller) -> None:
    api.post("/audit_templates", NIGHTLY)
    assert api.patch("/audit_templates/nightly", []).json()["updated_at"] is None
