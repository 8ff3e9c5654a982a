"""Invalid input is refused in the error format of the API, with the field and the rule."""

import json
from http import HTTPStatus
from typing import Any

import pytest
from django.http import HttpResponse

from actions.models import Action
from audits.models import Audit, AuditTemplate
from audits.plugins import synchronize
from tests.api import Caller, fault
from tests.builders import make_audit, make_plan, make_strategy

pytestmark = pytest.mark.django_db

UNKNOWN = "11111111-1111-4111-8111-111111111111"
HUGE = 2**70


@pytest.fixture(scope="module")
def paths(module_transaction: None) -> dict[str, str]:
    """Return the path of one object of each kind that accepts a body."""
    synchronize()
    audit = make_audit("nightly")
    plan = make_plan({"a": []}, audit=audit)
    template = AuditTemplate.objects.create(name="a template", goal=audit.goal, strategy=make_strategy())
    return {
        "audits": "/audits",
        "audit": f"/audits/{audit.uuid}",
        "templates": "/audit_templates",
        "template": f"/audit_templates/{template.uuid}",
        "plan": f"/action_plans/{plan.uuid}",
        "action": f"/actions/{Action.objects.get().uuid}",
        "webhook": f"/webhooks/{audit.uuid}",
    }


def send(api: Caller, method: str, path: str, body: bytes | str, **headers: str) -> HttpResponse:
    options: Any = {"content_type": "application/json", "headers": api.headers | headers}
    return api.client.generic(method, f"/v1{path}", body, **options)


def assert_refused(answer: HttpResponse, status: int, *named: str) -> None:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    for word in named:
        assert word in fault(answer)


BODIES = [("POST", "audits"), ("POST", "templates"), ("POST", "webhook")]
BODIES += [("PATCH", "audit"), ("PATCH", "template"), ("PATCH", "plan"), ("PATCH", "action")]


@pytest.mark.parametrize(("method", "where"), BODIES)
@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"not json", "JSON"),
        (b"{", "JSON"),
        (b"[NaN]", "JSON"),
        (b'[{"op": "replace", "path": "/state", "value": Infinity}]', "JSON"),
        (b'{"name": "\\ud800"}', "JSON"),
        (b'"\xff\xfe"', "JSON"),
        (b"[" * 100_000, "JSON"),
        (b"[" * 200 + b"]" * 200, "nested"),
        (b'{"name": "a\\u0000b"}', "NUL"),
        (b'[{"op": "replace", "path": "/a\\u0000", "value": 1}]', "NUL"),
    ],
)
def test_malformed_or_unstorable_body_is_400(
    api: Caller, paths: dict[str, str], method: str, where: str, body: bytes, named: str
) -> None:
    assert_refused(send(api, method, paths[where], body), 400, named)


@pytest.mark.parametrize(("method", "where"), BODIES)
def test_body_of_10_mb_is_413(api: Caller, paths: dict[str, str], method: str, where: str) -> None:
    assert_refused(send(api, method, paths[where], b'{"name": "' + b"a" * 10_000_000 + b'"}'), 413, "bytes")


def test_beginning_of_a_body_with_an_excessive_length_is_not_executed(api: Caller, paths: dict[str, str]) -> None:
    body = b'{"audit_type": "ONESHOT", "goal": "dummy", "name": "part"}'
    assert_refused(send(api, "POST", paths["audits"], body, **{"Content-Length": "5000000"}), 413, "bytes")
    assert not Audit.objects.filter(name="part").exists()


@pytest.mark.parametrize(("method", "where"), BODIES)
@pytest.mark.parametrize("body", ["null", "1", '"text"', "true"])
def test_body_that_is_neither_object_nor_list_is_400(
    api: Caller, paths: dict[str, str], method: str, where: str, body: str
) -> None:
    assert_refused(send(api, method, paths[where], body), 400)


VALUES = [None, True, 1, -1, HUGE, 1.5, "", "x" * 300, "😀", [], [1], {}, {"a": 1}, [[]], UNKNOWN]


def assert_created_or_refused(answer: HttpResponse, made: int) -> None:
    assert answer.status_code in {made, 400, 404, 409}, answer.content
    assert answer.status_code == made or fault(answer)


AUDIT_FIELDS = ["audit_type", "name", "goal", "strategy", "audit_template_uuid", "parameters", "interval", "uuid"]
AUDIT_FIELDS += ["auto_trigger", "force", "start_time", "end_time", "state", "scope", "hostname", "foo", "", "😀"]


@pytest.mark.parametrize("field", AUDIT_FIELDS)
def test_audit_with_any_value_is_created_or_refused(api: Caller, paths: dict[str, str], field: str) -> None:
    for value in VALUES:
        body = {"audit_type": "ONESHOT", "goal": "dummy", "strategy": "dummy"} | {field: value}
        assert_created_or_refused(api.post("/audits", body), 201)


TEMPLATE_FIELDS = ["name", "goal", "strategy", "description", "scope", "default_parameters", "uuid", "foo"]


@pytest.mark.parametrize("field", TEMPLATE_FIELDS)
def test_template_with_any_value_is_created_or_refused(api: Caller, paths: dict[str, str], field: str) -> None:
    for value in VALUES:
        body = {"name": "new", "goal": "dummy", "strategy": "dummy"} | {field: value}
        assert_created_or_refused(api.post("/audit_templates", body), 201)


PATCHED = {
    "audit": [*AUDIT_FIELDS, "goal_uuid", "next_run_time"],
    "template": [*TEMPLATE_FIELDS, "links"],
    "plan": ["state", "hostname", "global_efficacy", "audit_uuid"],
    "action": ["state", "status_message", "input_parameters", "parents"],
}


@pytest.mark.parametrize("operation", ["add", "replace", "remove"])
@pytest.mark.parametrize(("where", "field"), [(where, field) for where in PATCHED for field in PATCHED[where]])
def test_patch_with_any_value_is_applied_or_refused(
    api: Caller, paths: dict[str, str], where: str, field: str, operation: str
) -> None:
    for value in VALUES:
        patch = [{"op": operation, "path": f"/{field}", "value": value}]
        assert_created_or_refused(api.patch(paths[where], patch), 200)


@pytest.mark.parametrize("where", PATCHED)
@pytest.mark.parametrize(
    ("patch", "named"),
    [
        ({"op": "replace"}, "list"),
        ([1], "operation"),
        ([{}], "path"),
        ([{"op": "replace", "path": "/state"}], "value"),
        ([{"op": "test", "path": "/state", "value": 1}], "op"),
        ([{"op": ["add"], "path": "/state", "value": 1}], "op"),
        ([{"op": "add", "path": 7, "value": 1}], "path"),
        ([{"op": "add", "path": "state", "value": 1}], "path"),
        ([{"op": "add", "path": "/", "value": 1}], "path"),
        ([{"op": "add", "path": "/state", "value": 1, "from": "/uuid"}], "from"),
        ([{"op": "replace", "path": "/uuid", "value": UNKNOWN}], "/uuid"),
        ([{"op": "replace", "path": "/foo/bar/baz", "value": 1}], "foo"),
    ],
)
def test_invalid_patch_is_400_with_the_reason(
    api: Caller, paths: dict[str, str], where: str, patch: Any, named: str
) -> None:
    assert_refused(api.patch(paths[where], patch), 400, named)


COLLECTIONS = ["goals", "strategies", "scoring_engines", "audit_templates", "audits", "action_plans", "actions"]
COLLECTIONS += ["services"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=-1", 400),
        ("limit=1e3", 400),
        ("limit=%F0%9F%98%80", 400),
        ("limit=%D9%A1", 400),  # a digit of another script, which int() accepts
        ("limit=1&foo=%FF", 400),
        ("sort_key=", 400),
        ("sort_key=__class__", 400),
        ("sort_key=pk", 400),
        ("sort_dir=ASC", 400),
        ("marker=%00", 400),
        (f"limit={HUGE}", 200),
        ("limit=1&limit=2", 400),
    ],
)
def test_query_argument_is_accepted_or_400(api: Caller, query: str, status: int) -> None:
    assert {api.get(f"/{collection}?{query}").status_code for collection in COLLECTIONS} == {status}


STRANGE_NAMES = [str(HUGE), "-1", "0", "😀", "a%2Fb", "%00", "%FF", "x" * 3000, "'; DROP TABLE", "{}", UNKNOWN]


@pytest.mark.parametrize("name", STRANGE_NAMES)
def test_strange_name_is_not_found_or_refused(api: Caller, name: str) -> None:
    assert {api.get(f"/{collection}/{name}").status_code for collection in COLLECTIONS} <= {400, 404}


@pytest.mark.parametrize("marker", [*STRANGE_NAMES, ""])
def test_strange_marker_is_not_found_or_refused(api: Caller, marker: str) -> None:
    assert {api.get(f"/{collection}?marker={marker}").status_code for collection in COLLECTIONS} <= {400, 404}


@pytest.mark.parametrize("method", ["PUT", "TRACE", "DELETE", "PROPFIND"])
def test_unsupported_method_is_405_with_the_allowed_methods(api: Caller, method: str) -> None:
    answer = send(api, method, "/goals", b"")
    assert_refused(answer, 405)
    assert "GET" in answer["Allow"]


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("OPTIONS", 200)])
def test_head_and_options_are_answered(api: Caller, method: str, status: int) -> None:
    assert send(api, method, "/goals", b"").status_code == status


@pytest.mark.parametrize("accept", ["text/html", "image/png", "", ";;;", "*/*;q=0", "application/xml", "é"])
def test_response_is_json_for_any_accept_header(api: Caller, accept: str) -> None:
    answer = api.get("/goals", Accept=accept)
    assert answer.status_code == HTTPStatus.OK
    assert answer["Content-Type"] == "application/json"


@pytest.mark.parametrize("token", ["😀", "é", "", " ", "a" * 5000, "a\x00b", "\ud800"])
def test_malformed_token_is_401(token: str) -> None:
    answer = Caller(None).get("/goals", **{"X-Auth-Token": token})
    assert answer.status_code == 401
    assert json.loads(answer.content)["error"]["code"] == 401


@pytest.mark.parametrize(
    "credential", ["Basic", "Basic \xff", "Basic !!!!", "Basic OjpAAA==", "Token", "Token a b", "é"]
)
def test_malformed_credential_is_401(credential: str) -> None:
    assert Caller(None).get("/goals", Authorization=credential).status_code == 401


@pytest.mark.parametrize("version", ["infra-optim 😀", "infra-optim " + "9" * 5000, "infra-optim 1.\u0665", ", , ,"])
def test_malformed_version_is_refused_or_means_the_oldest(api: Caller, version: str) -> None:
    assert api.get("/goals", **{"OpenStack-API-Version": version}).status_code in {200, 406}


def test_missing_body_is_400(api: Caller, paths: dict[str, str]) -> None:
    answer = api.client.generic("POST", f"/v1{paths['audits']}", "", headers=api.headers)
    assert_refused(answer, 400)


def test_body_without_a_content_length_is_411(api: Caller, paths: dict[str, str]) -> None:
    answer = api.client.patch(f"/v1{paths['action']}", headers=api.headers | {"Transfer-Encoding": "chunked"})
    assert_refused(answer, 411, "Content-Length")


@pytest.mark.parametrize("length", ["-1", "x", ""])
def test_invalid_content_length_is_refused(api: Caller, paths: dict[str, str], length: str) -> None:
    assert send(api, "POST", paths["audits"], b"{}", **{"Content-Length": length}).status_code in {400, 413}


def test_unknown_path_is_404(api: Caller) -> None:
    assert_refused(api.get("/nowhere"), 404)
