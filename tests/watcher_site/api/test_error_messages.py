"""The messages that Watcher's clients and their users match, word for word (docs/compatibility.md)."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from actions.models import Action
from audits.models import AuditTemplate
from audits.plugins import synchronize
from plans.models import ActionPlan
from tests.api import Caller, fault
from tests.builders import make_audit, make_plan

pytestmark = pytest.mark.django_db

PLAN, RUNNING, ACTION, DONE = (f"{number}d5a3c5e-6a0b-4c0e-9c55-3a3a8f6f2c11" for number in range(4))
NOWHERE = "9d5a3c5e-6a0b-4c0e-9c55-3a3a8f6f2c11"


def step(path: str, value: Any = None, op: str = "replace") -> list[dict[str, Any]]:
    return [{"op": op, "path": path} | ({} if op == "remove" else {"value": value})]


def not_applied(steps: list[dict[str, Any]], reason: str) -> str:
    return f"Couldn't apply patch '{json.dumps(steps, separators=(',', ':'))}'. Reason: {reason}"


FIELD = "Invalid input for field/attribute {}. Value: '{}'. {}"
TEMPLATE: dict[str, Any] = {"name": "new", "goal": "dummy"}
AUDIT: dict[str, Any] = {"audit_type": "ONESHOT", "goal": "dummy"}
CHANGED_GOAL = (
    "Updating goal or strategy on a template that has default_parameters requires providing updated "
    "default_parameters in the same request"
)
# Of each request: the method, the path, the body, the status of the answer, and its message.
ANSWERS: list[tuple[str, str, Any, int, str]] = [
    # Lists.
    ("GET", "/goals?limit=0", None, 400, "Limit must be positive"),
    ("GET", "/audits?sort_dir=up", None, 400, "Invalid sort direction: up. Acceptable values are 'asc' or 'desc'"),
    ("GET", "/audits?foo=1", None, 400, 'Unknown argument: "foo"'),
    ("GET", f"/audits?marker={NOWHERE}", None, 404, f"Audit {NOWHERE} could not be found"),
    (
        "GET",
        "/actions?marker=x",
        None,
        400,
        FIELD.format("marker", "x", "unable to convert to uuid. Error: Expected a uuid but received x."),
    ),
    (
        "GET",
        f"/actions?action_plan_uuid={PLAN}&audit_uuid={NOWHERE}",
        None,
        400,
        "Filtering actions on both audit and action-plan is prohibited",
    ),
    # Missing objects.
    ("GET", "/goals/nope", None, 404, "Goal nope could not be found"),
    ("GET", "/strategies/nope", None, 404, "Strategy nope could not be found"),
    ("GET", "/scoring_engines/nope", None, 404, "ScoringEngine nope could not be found"),
    ("GET", "/services/77", None, 404, "The service 77 cannot be found."),
    ("GET", "/audit_templates/nope", None, 404, "AuditTemplate nope could not be found"),
    ("GET", "/audits/nope", None, 404, "Audit nope could not be found"),
    ("GET", f"/action_plans/{NOWHERE}", None, 404, f"ActionPlan {NOWHERE} could not be found"),
    ("GET", f"/actions/{NOWHERE}", None, 404, f"Action {NOWHERE} could not be found"),
    # Audit templates.
    (
        "POST",
        "/audit_templates",
        TEMPLATE | {"name": "stored"},
        409,
        "An audit_template with UUID or name stored already exists",
    ),
    (
        "POST",
        "/audit_templates",
        TEMPLATE | {"goal": "nope"},
        400,
        FIELD.format("goal", "nope", "Goal nope is invalid"),
    ),
    (
        "POST",
        "/audit_templates",
        TEMPLATE | {"default_parameters": {"para1": 1}},
        400,
        "default_parameters requires a strategy to be specified",
    ),
    (
        "PATCH",
        "/audit_templates/plain",
        step("/goal", op="remove"),
        400,
        "Cannot remove 'goal' attribute from an audit template",
    ),
    ("PATCH", "/audit_templates/stored", step("/goal", "server_consolidation"), 409, CHANGED_GOAL),
    # Audits.
    ("POST", "/audits", AUDIT | {"foo": 1}, 400, "Unknown attribute for argument audit_p: foo"),
    ("POST", "/audits", {"goal": "dummy"}, 400, FIELD.format("audit_type", "None", "Mandatory field missing.")),
    (
        "PATCH",
        "/audits/nightly",
        step("/uuid", NOWHERE),
        400,
        "'/uuid' is an internal attribute and can not be updated",
    ),
    (
        "PATCH",
        "/audits/nightly",
        step("/foo", 1, "add"),
        400,
        "Adding a new attribute (/foo) to the root of the resource is not allowed",
    ),
    (
        "PATCH",
        "/audits/nightly",
        step("/state", "SUSPENDED"),
        400,
        not_applied(step("/state", "SUSPENDED"), "State transition not allowed: (PENDING -> SUSPENDED)"),
    ),
    ("DELETE", "/audits/nightly", None, 400, "Couldn't delete when state is 'PENDING'."),
    # Action plans.
    ("POST", f"/action_plans/{RUNNING}/start", {}, 400, "Couldn't start when state is 'ONGOING'."),
    ("DELETE", f"/action_plans/{RUNNING}", None, 400, "Couldn't delete when state is 'ONGOING'."),
    ("PATCH", f"/action_plans/{PLAN}", step("/state", "FOO"), 400, "Invalid state: FOO"),
    (
        "PATCH",
        f"/action_plans/{PLAN}",
        step("/state", "SUCCEEDED"),
        400,
        not_applied(step("/state", "SUCCEEDED"), "State transition not allowed: (RECOMMENDED -> SUCCEEDED)"),
    ),
    # Actions.
    (
        "PATCH",
        f"/actions/{ACTION}",
        step("/state", "ONGOING"),
        409,
        "State transition not allowed: (PENDING -> ONGOING)",
    ),
    (
        "PATCH",
        f"/actions/{ACTION}",
        step("/status_message", "why"),
        409,
        "status_message update only allowed when action state is SKIPPED",
    ),
    (
        "PATCH",
        f"/actions/{DONE}",
        step("/state", "SKIPPED"),
        409,
        "State update not allowed for actionplan state: ONGOING",
    ),
    (
        "PATCH",
        f"/actions/{ACTION}",
        step("/state", op="remove"),
        400,
        "'/state' is a mandatory attribute and can not be removed",
    ),
    (
        "PATCH",
        f"/actions/{ACTION}",
        step("/uuid", NOWHERE),
        400,
        "'/uuid' is not an allowed attribute and can not be updated",
    ),
]


@pytest.fixture
def rows(db: None) -> None:
    synchronize()
    audit = make_audit("nightly")
    AuditTemplate.objects.create(
        name="stored", goal=audit.goal, strategy=audit.strategy, default_parameters={"para1": 1}
    )
    AuditTemplate.objects.create(name="plain", goal=audit.goal)
    make_plan({"a": []}, uuid=PLAN)
    make_plan({"a": []}, uuid=RUNNING, state=ActionPlan.State.ONGOING)
    Action.objects.filter(action_plan__uuid=PLAN).update(uuid=ACTION)
    Action.objects.filter(action_plan__uuid=RUNNING).update(uuid=DONE)


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), ANSWERS)
def test_error_message_is_compatible_with_watcher(
    rows: None, cloud_admin: User, method: str, path: str, body: Any, status: int, message: str
) -> None:
    answer = Caller(cloud_admin, "1.7").call(method, path, body)
    assert (answer.status_code, fault(answer)) == (status, message)
