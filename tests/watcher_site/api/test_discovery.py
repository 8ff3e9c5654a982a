"""The discovery documents of the API, and the redirection of browsers."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.api import Caller
from tests.builders import make_plan, make_server

pytestmark = [pytest.mark.any_database, pytest.mark.django_db]


def test_root_shows_the_newest_version(client: Client) -> None:
    answer = client.get("/").json()
    assert answer["default_version"]["max_version"] == "1.17"
    assert answer["versions"][0]["links"] == [{"href": "http://testserver/v1/", "rel": "self"}]


def test_root_ignores_version_headers(client: Client) -> None:
    assert client.get("/", headers={"OpenStack-API-Version": "infra-optim 9.9"}).status_code == 200


@pytest.mark.parametrize(
    ("version", "extra"),
    [
        ("1.0", set()),
        ("1.3", {"data_model"}),
        ("1.7", {"data_model", "webhooks"}),
        ("1.8", {"data_model", "webhooks", "servers"}),
    ],
)
def test_version_1_lists_the_collections_of_the_microversion(cloud_admin: User, version: str, extra: set[str]) -> None:
    answer = Caller(cloud_admin, version).get("/").json()
    assert {"audits", "action_plans", "services"} < answer.keys()
    assert answer.keys() & {"data_model", "webhooks", "servers"} == extra


def test_version_1_lists_exclusions_from_1_13(cloud_admin: User) -> None:
    assert "exclusions" not in Caller(cloud_admin, "1.12").get("/").json()
    assert "exclusions" in Caller(cloud_admin, "1.13").get("/").json()


def test_version_1_requires_a_login(client: Client) -> None:
    assert client.get("/v1/").status_code == 401


def test_root_redirects_browsers_to_the_console(client: Client) -> None:
    answer = client.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (answer.status_code, answer["Location"]) == (302, "/console/")


def test_plan_bookmark_redirects_a_browser_to_the_page(client: Client) -> None:
    plan = make_plan()
    answer = client.get(f"/action_plans/{plan.uuid}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Location"]) == (302, f"/console/plans/{plan.uuid}/")


def test_server_bookmark_redirects_a_browser_to_the_page(client: Client) -> None:
    server = make_server()
    answer = client.get(f"/servers/{server.uuid}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer["Location"]) == (302, f"/console/servers/{server.uuid}/")


def test_bookmark_returns_the_object_to_an_api_client(api: Caller) -> None:
    plan = make_plan()
    assert api.client.get(f"/action_plans/{plan.uuid}").json()["uuid"] == str(plan.uuid)
