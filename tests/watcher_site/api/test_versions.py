"""Microversions: which one a request gets, and what every answer says about them."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from tests.api import Caller, fault
from watcher_site.api import versions

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("requested", "used"),
    [
        (None, "1.0"),
        ("infra-optim 1.5", "1.5"),
        ("infra-optim latest", "1.16"),
        ("infra-optim Latest", "1.16"),
        ("compute 2.1, infra-optim 1.3", "1.3"),
        ("infra-optim 1.2, infra-optim 1.4", "1.4"),
        ("compute 2.1", "1.0"),
        ("infra-optim 1", "1.0"),
        ("infra-optim abc", "1.0"),
        ("infra-optim", "1.0"),
        ("", "1.0"),
    ],
)
def test_the_header_asks_for_a_version(cloud_admin: User, requested: str | None, used: str) -> None:
    headers = {} if requested is None else {"OpenStack-API-Version": requested}
    answer = Caller(cloud_admin, None).get("/goals", **headers)
    assert answer.status_code == 200
    assert answer["OpenStack-API-Version"] == f"infra-optim {used}"


def test_accept_may_ask_for_a_version(cloud_admin: User) -> None:
    answer = Caller(cloud_admin, None).get("/goals", Accept="application/json; version=1.4")
    assert answer["OpenStack-API-Version"] == "infra-optim 1.4"


def test_both_headers_may_ask_for_the_same(cloud_admin: User) -> None:
    answer = Caller(cloud_admin, "1.4").get("/goals", Accept="application/json; version=1.4")
    assert answer.status_code == 200


def test_headers_that_disagree_are_400(cloud_admin: User) -> None:
    answer = Caller(cloud_admin, "1.4").get("/goals", Accept="application/json; version=1.5")
    assert answer.status_code == 400


@pytest.mark.parametrize("requested", ["1.99", "2.0", "0.9", "1.2.3", "10", "99999999.1"])
def test_a_version_that_is_not_served_is_406_and_says_which_are(cloud_admin: User, requested: str) -> None:
    answer = Caller(cloud_admin, requested).get("/goals")
    assert answer.status_code == 406
    assert answer["OpenStack-API-Minimum-Version"] == "1.0"
    assert answer["OpenStack-API-Maximum-Version"] == "1.16"
    assert "OpenStack-API-Version" not in answer
    assert f"The supported version range is: {versions.RANGE}." in fault(answer)


@pytest.mark.parametrize("path", ["/goals", "/goals/nope", "/goals?foo=1"])
def test_every_answer_names_the_versions(api: Caller, path: str) -> None:
    answer = api.get(path)
    assert answer["OpenStack-API-Version"] == "infra-optim 1.7"
    assert answer["OpenStack-API-Minimum-Version"] == "1.0"
    assert answer["OpenStack-API-Maximum-Version"] == "1.16"
    assert "OpenStack-API-Version" in answer["Vary"]
    assert answer["x-openstack-request-id"].startswith("req-")


def test_the_tenth_version_comes_after_the_ninth() -> None:
    assert max({(1, 9): "", (1, 10): ""}) == (1, 10)
    assert versions.format_version((1, 10)) == "1.10"


def test_an_answer_that_a_browser_takes_for_a_page_loads_nothing(api: Caller) -> None:
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
def test_a_resource_of_a_later_version_names_it(cloud_admin: User, method: str, path: str, needed: str) -> None:
    answer = Caller(cloud_admin, "1.0").call(method, path.format(uuid=uuid4()))
    words = f"Request not acceptable. API microversion {needed} or higher is required."
    assert (answer.status_code, fault(answer)) == (406, words)
