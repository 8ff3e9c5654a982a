"""Microversions: negotiation by headers, and the version headers of responses."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from tests.api import Caller, fault
from watcher_site.api import versions

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]


@pytest.mark.parametrize(
    ("requested", "used"),
    [
        (None, "1.0"),
        ("infra-optim 1.5", "1.5"),
        ("infra-optim latest", "1.17"),
        ("infra-optim Latest", "1.17"),
        ("compute 2.1, infra-optim 1.3", "1.3"),
        ("infra-optim 1.2, infra-optim 1.4", "1.4"),
        ("compute 2.1", "1.0"),
        ("infra-optim 1", "1.0"),
        ("infra-optim abc", "1.0"),
        ("infra-optim", "1.0"),
        ("", "1.0"),
    ],
)
def test_header_selects_the_version(cloud_admin: User, requested: str | None, used: str) -> None:
    headers = {} if requested is None else {"OpenStack-API-Version": requested}
    answer = Caller(cloud_admin, None).get("/goals", **headers)
    assert answer.status_code == 200
    assert answer["OpenStack-API-Version"] == f"infra-optim {used}"


def test_accept_header_selects_the_version(cloud_admin: User) -> None:
    answer = Caller(cloud_admin, None).get("/goals", Accept="application/json; version=1.4")
    assert answer["OpenStack-API-Version"] == "infra-optim 1.4"


def test_headers_with_the_same_version_are_accepted(cloud_admin: User) -> None:
    answer = Caller(cloud_admin, "1.4").get("/goals", Accept="application/json; version=1.4")
    assert answer.status_code == 200


def test_conflicting_version_headers_are_400(cloud_admin: User) -> None:
    answer = Caller(cloud_admin, "1.4").get("/goals", Accept="application/json; version=1.5")
    assert answer.status_code == 400


@pytest.mark.parametrize("requested", ["1.99", "2.0", "0.9", "1.2.3", "10", "99999999.1"])
def test_unsupported_version_is_406_with_the_supported_range(cloud_admin: User, requested: str) -> None:
    answer = Caller(cloud_admin, requested).get("/goals")
    assert answer.status_code == 406
    assert answer["OpenStack-API-Minimum-Version"] == "1.0"
    assert answer["OpenStack-API-Maximum-Version"] == "1.17"
    assert "OpenStack-API-Version" not in answer
    assert f"The supported version range is: {versions.RANGE}." in fault(answer)


@pytest.mark.parametrize("path", ["/goals", "/goals/nope", "/goals?foo=1"])
def test_every_response_has_the_version_headers(api: Caller, path: str) -> None:
    answer = api.get(path)
    assert answer["OpenStack-API-Version"] == "infra-optim 1.7"
    assert answer["OpenStack-API-Minimum-Version"] == "1.0"
    assert answer["OpenStack-API-Maximum-Version"] == "1.17"
    assert "OpenStack-API-Version" in answer["Vary"]
    assert answer["x-openstack-request-id"].startswith("req-")


def test_versions_are_compared_as_numbers() -> None:
    assert max({(1, 9): "", (1, 10): ""}) == (1, 10)
    assert versions.format_version((1, 10)) == "1.10"


def test_json_response_has_a_policy_that_loads_nothing(api: Caller) -> None:
    assert api.get("/goals")["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"


@pytest.mark.parametrize(
    ("method", "path", "needed"),
    [
        ("POST", "/actions/{uuid}/signal", "1.12"),
        ("GET", "/action_plans/{uuid}/preflight", "1.12"),
        ("POST", "/action_plans/{uuid}/continue", "1.12"),
        ("GET", "/profiles", "1.12"),
        ("GET", "/data_model", "1.3"),
    ],
)
def test_error_for_a_later_resource_names_its_version(cloud_admin: User, method: str, path: str, needed: str) -> None:
    answer = Caller(cloud_admin, "1.0").call(method, path.format(uuid=uuid4()))
    words = f"Request not acceptable. API microversion {needed} or higher is required."
    assert (answer.status_code, fault(answer)) == (406, words)
