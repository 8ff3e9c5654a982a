"""Requests generated from the OpenAPI documents: valid ones are accepted, and invalid ones are refused."""

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, given, settings
from knox.models import AuthToken
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from actions.models import Action
from audits.models import AuditTemplate
from audits.plugins import synchronize
from cluster.stacks.templates.templates import normalise
from plans.models import ActionPlan
from tests.actions.exclusions.builders import make_exclusion
from tests.builders import (
    make_audit,
    make_cluster,
    make_member,
    make_node,
    make_operation,
    make_plan,
    make_policy,
    make_profile,
    make_resource,
    make_server,
    make_stack,
    make_strategy,
)
from tests.watcher_site.notifications.relaying import make_undelivered, subscribe_to
from watcher_site.accounts.tokens import make_token
from watcher_site.api import versions
from watcher_site.api.openapi.documentation import document
from watcher_site.models import HistoryEntry, Service

pytestmark = [pytest.mark.conformance, pytest.mark.django_db, pytest.mark.usefixtures("one_connection")]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
    allow_header_conformance,
]
# Errors of rules that a schema cannot express: existence, states, and values that depend on each other.
BEYOND_SCHEMAS = re.compile(
    "|".join(
        (
            r"Goal .* is invalid|there (is|are) no |has no flavor|marker \[.*\] not found",
            r"There is no such (status|vm_state|type)|Invalid action: ",
            r"Expected a uuid or int but received [-0-9a-f]+\.",
            r"State transition not allowed|Couldn't apply patch|Couldn't delete when state|It changes nothing",
            r"Adding a new attribute|is not an allowed attribute|is an internal attribute|is a mandatory attribute",
            r"Filtering actions on both|cannot be given together|A valid goal or audit_template|unless cluster is",
            r"Either audit_template_uuid or|is required with (adjustment_type|number)|for CHANGE_IN_PERCENTAGE alone",
            r"unless min_size or max_size is|min_size: \S+ is above|capacity \(\S+\) is (less|greater|below)",
            r"of audit must not be set|audit template UUID or name specified is invalid",
            r"changes-since must be less|must be a percentage",
            r"must be in a year from|must be whsec_ and 24 to 64 bytes in base64",
            r"has a private address|has no address|Unsupported sort key|'' should be non-empty",
            r"must have a character that is not a space|must be a time in ISO 8601|nor a cron expression",
            r"must not contain control or format characters|template: |field may not be blank",
            r"number: must not be below",
            r"bytes in base64|networks: must be a list|neither a comma nor a slash|either network or port",
            r"fixed_ip: |must have one of source_type|uuid: is for source_type|uuid: is required unless",
            r"must not contain a slash, end in|a subscription of the kind \w+ has none|the site sends no e-mail",
            r"is required for a subscription of the kind|must be the whole URL of the incoming webhook",
            r"there is no event ",
        )
    )
)
OLDEST, NEWEST = (versions.format_version(version) for version in (versions.MINIMUM, versions.MAXIMUM))
OPERATIONS = [
    (version, path, method)
    for version in (OLDEST, "1.7", NEWEST)
    for path, methods in document(version)["paths"].items()
    for method in methods
]
PLAN = "0d5a3c5e-6a0b-4c0e-9c55-3a3a8f6f2c11"
# Bodies that are accepted: generated bodies are almost always refused.
TEMPLATE = {
    "version": 1,
    "description": "",
    "resources": {"web": {"type": "server", "properties": {"flavor": "small"}}},
}
BODIES: dict[str, Any] = {
    "/v1/stacks": {"name": "new", "template": TEMPLATE, "plan_only": True},
    "/v1/stacks/{stack_name}/{identifier}": {"template": TEMPLATE},
    "/v1/audits": {"audit_type": "ONESHOT", "goal": "dummy", "strategy": "dummy", "parameters": {"para1": 2}},
    "/v1/audit_templates": {"name": "new", "goal": "dummy", "strategy": "dummy", "description": "😀"},
    "/v1/audits/{identifier}": [{"op": "replace", "path": "/state", "value": "CANCELLED"}],
    "/v1/profiles": {"name": "new", "spec": {"flavor": "small", "metadata": {"role": "web"}}},
    "/v1/policies": {"name": "new", "type": "senlin.policy.scaling-1.0", "spec": {"event": "CLUSTER_SCALE_OUT"}},
    "/v1/policies/validate": {"type": "senlin.policy.batch-1.0", "spec": {"pause_time": 1}},
    "/v1/policies/{identifier}": [{"op": "replace", "path": "/name", "value": "other"}],
    "/v1/exclusions": {"name": "new", "action_types": ["migrate"], "targets": {"projects": ["shop"]}},
    "/v1/exclusions/{identifier}": [{"op": "replace", "path": "/reason", "value": "audit week"}],
    "/v1/exclusions/try": {"action_plan": PLAN, "exclusion": {"name": "new"}},
    "/v1/exclusions/{identifier}/try": {"action_plan": PLAN},
    "/v1/nodes": {"name": "web", "profile": "a profile", "plan_only": True},
    "/v1/clusters": {"name": "web", "profile": "a profile", "desired_capacity": 1, "plan_only": True},
    "/v1/clusters/{identifier}": [{"op": "replace", "path": "/name", "value": "other"}],
    "/v1/clusters/{identifier}/scale_out": {"count": 1},
    "/v1/clusters/{identifier}/scale_in": {"count": 1, "plan_only": True},
    "/v1/clusters/{identifier}/resize": {"adjustment_type": "CHANGE_IN_PERCENTAGE", "number": 50, "min_step": 2},
    "/v1/clusters/{identifier}/actions": {"check": {}},
    "/v1/clusters/{identifier}/policies": {"policy": "a policy"},
    "/v1/servers": {"server": {"name": "web", "flavorRef": "small", "metadata": {"role": "web"}}},
    "/v1/servers/{identifier}/action": {"rebuild": {"imageRef": None}},
    "/v1/nodes/{identifier}": [{"op": "replace", "path": "/tainted", "value": True}],
    "/v1/subscriptions": {"name": "new", "url": "http://192.0.2.7/events", "event_types": ["*.error"]},
    "/v1/subscriptions/{identifier}": [{"op": "replace", "path": "/enabled", "value": False}],
    "/v1/undelivered/resend": {"subscription_uuid": None},
    "/v1/profiles/{identifier}": [{"op": "replace", "path": "/metadata", "value": {"team": "shop"}}],
    "/v1/audit_templates/{identifier}": [{"op": "replace", "path": "/name", "value": "other"}],
    "/v1/action_plans/{identifier}": [{"op": "replace", "path": "/state", "value": "CANCELLED"}],
    "/v1/actions/{identifier}": [{"op": "replace", "path": "/state", "value": "SKIPPED"}],
}
# Values of the other parameters of paths.
NAMES = {"stack_name": "shop", "resource": "web", "policy": "a policy", "request_id": "req-1"}
# The same requests in each run, so that a fault is reproducible.
BOUNDS = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def one_connection() -> Iterator[None]:
    """Keep the transaction of the test open after requests, as the test client of Django does."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def rows() -> dict[str, str]:
    """Create objects of all kinds, and return the identifier of one object of each collection."""
    synchronize()
    server = make_server(node=make_node())
    make_operation(server, "stop", "Error", request_id="req-1")
    audit = make_audit("nightly", audit_type="EVENT")
    of_audit = {"audit": audit, "strategy": audit.strategy, "global_efficacy": []}
    plan = make_plan({"a": [], "b": ["a"]}, uuid=PLAN, **of_audit)
    template = AuditTemplate.objects.create(name="a template", goal=audit.goal, strategy=audit.strategy)
    service = Service.objects.create(name=Service.APPLIER, host="one")
    make_plan({"c": []}, state=ActionPlan.State.SUCCEEDED).remove()
    return {
        "goals": "dummy",
        "strategies": make_strategy().name,
        "scoring_engines": "dummy_scorer",
        "audit_templates": str(template.uuid),
        "audits": str(audit.uuid),
        "webhooks": str(audit.uuid),
        "action_plans": str(plan.uuid),
        "actions": str(Action.objects.filter(action_plan=plan).first().uuid),
        "services": str(service.pk),
        "policies": str(make_policy(type="senlin.policy.batch-1.0").uuid),
        "policy_types": "senlin.policy.batch-1.0",
        "profiles": str(make_profile().uuid),
        "nodes": str(make_member().uuid),
        "clusters": str(make_cluster("web", size=2).uuid),
        "servers": str(server.uuid),
        "stacks": str(make_resource(make_stack("shop", template=normalise(TEMPLATE))).stack.uuid),
        "history": str(HistoryEntry.objects.create(deed="server.delete", object_type="server").uuid),
        "exclusions": str(make_exclusion(action_types=["migrate"]).uuid),
        "subscriptions": str(subscribe_to("http://192.0.2.7/events").uuid),
        "undelivered": str(make_undelivered().uuid),
        "tokens": make_token(User.objects.create_user("ines"))[0].token_key,
    }


@cache
def application() -> Any:
    return get_wsgi_application()


@cache
def schema_of(version: str) -> Any:
    config = schemathesis.Config.from_dict({"generation": {"allow-x00": False, "with-security-parameters": False}})
    described = deepcopy(document(version))
    for operations in described["paths"].values():
        for operation in operations.values():
            # `caller` sets this header and overrides a generated value.
            operation["parameters"] = [item for item in operation["parameters"] if item["name"] != versions.HEADER]
    return schemathesis.openapi.from_dict(described, config=config)


def caller(user: User, version: str) -> Any:
    """Return the WSGI application with the token of a user and the header of a version, whose document is tested."""
    _, token = AuthToken.objects.create(user)

    def call(environ: dict[str, Any], start_response: Any) -> Any:
        environ["HTTP_OPENSTACK_API_VERSION"] = f"infra-optim {version}"
        return application()(environ | {"HTTP_X_AUTH_TOKEN": token}, start_response)

    return call


def strategies(operation: Any, identifier: str) -> Iterator[tuple[Any, int]]:
    """Yield strategies for valid and invalid requests, with the number of examples of each.

    Most requests are for an existing object, since nearly all requests for an unknown object have the same response.
    Requests without a body or with a given body differ little: more examples covered no other line of the site.
    """
    named = {"identifier": identifier, **{name: NAMES[name] for name in NAMES if f"{{{name}}}" in operation.path}}
    if operation.body and operation.path in BODIES:
        yield operation.as_strategy(body=BODIES[operation.path], path_parameters=named), 4
    strange, known = (4, 10) if operation.body else (3, 7)
    for mode in GenerationMode.POSITIVE, GenerationMode.NEGATIVE:
        if mode == GenerationMode.POSITIVE or can_be_invalid(operation, "path", "query", "body"):
            yield operation.as_strategy(generation_mode=mode), strange if operation.path_parameters else 10
        if operation.path_parameters and (
            mode == GenerationMode.POSITIVE or can_be_invalid(operation, "query", "body")
        ):
            yield operation.as_strategy(generation_mode=mode, path_parameters=named), known


def can_be_invalid(operation: Any, *places: str) -> bool:
    """Return whether a part of the request in one of these places can break a rule of its schema.

    Any text is a valid part of a path without a format, and any body is valid without a schema. The search for
    invalid values that do not exist took longer than all requests.
    """
    described = operation.definition.raw
    parameters = [item for item in described["parameters"] if item["in"] != "path" or "format" in item["schema"]]
    schemas = {item["in"]: item["schema"] for item in parameters}
    if "requestBody" in described:
        schemas["body"] = described["requestBody"]["content"]["application/json"]["schema"]
    return any(schemas.get(place) for place in places)


def send(case: Any) -> None:
    if (case.path_parameters or {}).get("identifier") == "detail":
        return  # This is the path of another operation, the list with all fields.
    # As in Nova, the response to a reset has no body, but the same status as the response to a rebuild with a body.
    is_reset = isinstance(case.body, dict) and "os-resetState" in case.body
    excluded = [content_type_conformance, response_schema_conformance] if is_reset else []
    with transaction.atomic():
        case.call_and_validate(checks=[*CHECKS, accepts_what_the_schema_allows], excluded_checks=excluded)
        transaction.set_rollback(True)


def accepts_what_the_schema_allows(context: Any, response: Any, case: Any) -> None:
    """Fail if a request that its schema allows is refused, unless a rule beyond schemas refuses it."""
    if response.status_code != 400 or not BEYOND_SCHEMAS.search(response.text):
        positive_data_acceptance(context, response, case)


@pytest.mark.parametrize(("version", "path", "method"), OPERATIONS)
def test_responses_conform_to_the_openapi_document(
    version: str, path: str, method: str, rows: dict[str, str], cloud_admin: User
) -> None:
    schema = schema_of(version)
    schema.app = caller(cloud_admin, version)
    for strategy, enough in strategies(schema[path][method.upper()], rows.get(path.split("/")[2], "")):
        settings(BOUNDS, max_examples=enough)(given(strategy)(send))()
