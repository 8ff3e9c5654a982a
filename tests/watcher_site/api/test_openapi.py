"""The OpenAPI document of each microversion, and the page that shows it."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from drf_spectacular import validation

from tests.api import Caller, fault
from watcher_site.api import versions

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]

EVERY_VERSION = [versions.format_version(version) for version in versions.HISTORY]

# The command's own option --validate takes five times as long as writing the document.
SPECIFICATION = Path(validation.__file__).with_name("openapi_3_0_schema.json")


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema_rs.validator_for(json.loads(SPECIFICATION.read_text()))


DOCUMENTS: dict[str, bytes] = {}


def document(api: Caller, version: str) -> Any:
    """Return the document of a version, which is the same for each caller and takes long to generate."""
    if version not in DOCUMENTS:
        DOCUMENTS[version] = api.get(f"/openapi.json?version={version}").content
    return json.loads(DOCUMENTS[version])


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_document_of_every_version_is_valid_without_warnings(version: str, validator: Any, tmp_path: Path) -> None:
    file = tmp_path / "document"
    call_command("spectacular", api_version=version, format="openapi-json", fail_on_warn=True, file=str(file))
    written = json.loads(file.read_text())
    assert written["openapi"].startswith("3.0.")
    validator.validate(written)


def test_default_document_is_of_the_newest_version(api: Caller) -> None:
    answer = api.get("/openapi.json").json()
    assert answer["info"]["version"] == versions.format_version(versions.MAXIMUM)
    assert answer == document(api, versions.format_version(versions.MAXIMUM))


def test_document_of_an_unsupported_version_is_400(api: Caller) -> None:
    answer = api.get("/openapi.json?version=1.99")
    assert answer.status_code == 400
    assert "1.0, 1.1" in fault(answer)


def test_skipping_is_described_from_its_version(api: Caller) -> None:
    path = "/v1/actions/{identifier}"
    assert "patch" not in document(api, "1.4")["paths"][path]
    assert "patch" in document(api, "1.5")["paths"][path]


def data_model_types(api: Caller, version: str) -> Any:
    [parameter] = (
        parameter
        for parameter in document(api, version)["paths"]["/v1/data_model"]["get"]["parameters"]
        if parameter["name"] == "data_model_type"
    )
    return parameter["schema"]["enum"]


def test_storage_data_model_is_described_from_its_version(api: Caller) -> None:
    assert (data_model_types(api, "1.7"), data_model_types(api, "1.8")) == (["compute"], ["compute", "storage"])
    schemas = [document(api, version)["components"]["schemas"] for version in ("1.7", "1.8")]
    assert ["VolumeInPool" in schema for schema in schemas] == [False, True]


@pytest.mark.parametrize(
    ("component", "field", "before", "since"),
    [
        ("Action", "status_message", "1.4", "1.5"),
        ("Audit", "force", "1.1", "1.2"),
        ("AuditTemplate", "default_parameters", "1.6", "1.7"),
        ("NodeAndServer", "server_pinned_az", "1.5", "1.6"),
        ("ScoringEngine", "created_at", "1.7", "1.8"),
        ("Action", "depended_by", "1.11", "1.12"),
    ],
)
def test_fields_are_described_from_their_version(
    api: Caller, component: str, field: str, before: str, since: str
) -> None:
    assert field not in document(api, before)["components"]["schemas"][component]["properties"]
    assert field in document(api, since)["components"]["schemas"][component]["properties"]


def test_every_routed_path_is_described(api: Caller) -> None:
    paths = document(api, "1.12")["paths"]
    collections = ("goals", "strategies", "audit_templates", "audits", "action_plans", "actions", "scoring_engines")
    for collection in (*collections, "services", "profiles", "nodes", "clusters"):
        assert {f"/v1/{collection}", f"/v1/{collection}/detail", f"/v1/{collection}/{{identifier}}"} <= set(paths)
    assert "post" in paths["/v1/action_plans/{identifier}/start"]
    assert "post" in paths["/v1/webhooks/{identifier}"]


def test_document_requires_a_login() -> None:
    assert Caller(None).get("/openapi.json").status_code == 401


def test_page_is_readable_by_every_user(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    page = client.get("/v1/docs/?version=1.5")
    assert page.status_code == 200
    assert "/v1/openapi.json?version=1.5" in page.content.decode()


def test_page_allows_only_scripts_and_styles_of_the_site(client: Client, stranger: User) -> None:
    client.force_login(stranger)
    policy = client.get("/v1/docs/")["Content-Security-Policy"]
    assert "unsafe" not in policy


def test_every_operation_documents_429_and_503(api: Caller) -> None:
    paths = document(api, "1.7")["paths"].values()
    operations = [operation for path in paths for operation in path.values()]
    assert {code for operation in operations for code in ("429", "503") if code not in operation["responses"]} == set()


@pytest.mark.parametrize(("version", "kinds"), [("1.7", {"boolean", "integer", "string"}), ("1.8", {"boolean"})])
def test_audit_switches_are_described_with_the_types_of_their_version(
    api: Caller, version: str, kinds: set[str]
) -> None:
    schema = document(api, version)["components"]["schemas"]["NewAudit"]["properties"]["auto_trigger"]
    assert {kind["type"] for kind in schema.get("oneOf", [schema])} == kinds
