"""Validation of the actions of the strategy ``actuator`` when an audit or a template is created."""

from typing import Any

import pytest

from audits.models import Audit, AuditTemplate
from audits.plugins import synchronize
from tests.api import Caller, fault

pytestmark = pytest.mark.django_db

SERVER = "11111111-2222-3333-4444-555555555555"
NOP = {"action_type": "nop", "input_parameters": {"message": "m"}}
STOP = {"action_type": "stop", "input_parameters": {}, "resource_id": SERVER}
WRONG = [
    ({"action_type": "juggle", "input_parameters": {}}, "actions.1.action_type: there is no action type juggle."),
    ({"action_type": "sleep", "input_parameters": {"duration": "x"}}, "actions.1.input_parameters: duration: "),
    ({"action_type": "sleep", "input_parameters": {}}, "'duration' is a required property"),
    ({"action_type": "stop", "input_parameters": {}}, "'resource_id' is a required property"),
    ({"action_type": "stop", "input_parameters": {"resource_id": SERVER}}, "actions.1.input_parameters.resource_id: "),
    (STOP | {"resource_id": "web-1"}, "actions.1.input_parameters: resource_id: "),
    (NOP | {"weight": 3}, "actions.1.weight: is not an attribute of an action."),
    ({"action_type": "nop"}, "actions.1: 'input_parameters' is a required property"),
]


@pytest.fixture(autouse=True)
def strategies(db: None) -> None:
    synchronize()


def audit_of(*actions: Any) -> dict[str, Any]:
    parameters = {"actions": list(actions)}
    return {"audit_type": "ONESHOT", "goal": "unclassified", "strategy": "actuator", "parameters": parameters}


def template_of(*actions: Any) -> dict[str, Any]:
    parameters = {"actions": list(actions)}
    return {"name": "t", "goal": "unclassified", "strategy": "actuator", "default_parameters": parameters}


def test_valid_actions_are_accepted(api: Caller) -> None:
    assert api.post("/audits", audit_of(NOP, STOP)).status_code == 201


@pytest.mark.parametrize(("action", "words"), WRONG)
def test_audit_with_an_invalid_action_is_refused(api: Caller, action: dict[str, Any], words: str) -> None:
    answer = api.post("/audits", audit_of(NOP, action))
    assert (answer.status_code, Audit.objects.exists()) == (400, False)
    assert "Invalid parameters for strategy: " in fault(answer)
    assert words in fault(answer)


@pytest.mark.parametrize(("action", "words"), WRONG)
def test_template_with_an_invalid_action_is_refused(api: Caller, action: dict[str, Any], words: str) -> None:
    answer = api.post("/audit_templates", template_of(NOP, action))
    assert (answer.status_code, AuditTemplate.objects.exists()) == (400, False)
    assert "Invalid default_parameters for strategy: " in fault(answer)
    assert words in fault(answer)


def test_change_of_a_template_to_an_invalid_action_is_refused(api: Caller) -> None:
    uuid = api.post("/audit_templates", template_of(NOP)).json()["uuid"]
    actions = [{"action_type": "juggle", "input_parameters": {}}]
    patch = [{"op": "replace", "path": "/default_parameters", "value": {"actions": actions}}]
    answer = api.patch(f"/audit_templates/{uuid}", patch)
    assert answer.status_code == 400
    assert "actions.0.action_type: there is no action type juggle." in fault(answer)
