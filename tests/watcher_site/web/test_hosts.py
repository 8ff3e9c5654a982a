"""A request with an unknown host name is refused, in the format of the API or the console, and logged in one line."""

import json

import pytest
from django.test import Client

from tests.watcher_site.site_process import run

REQUEST_WITH_UNKNOWN_HOST = """
import django; django.setup()
from django.test import Client
Client().get("/v1/audits", headers={"host": "cloud.example.org"})
"""


@pytest.mark.parametrize("path", ["/", "/v1/audits", "/readyz"])
@pytest.mark.parametrize("host", ["cloud.example.org", "no host!"])
def test_unknown_host_is_400_in_the_error_format_of_the_api(client: Client, path: str, host: str) -> None:
    answer = client.get(path, headers={"host": host})
    fault = json.loads(json.loads(answer.content)["error_message"])
    assert (answer.status_code, fault["faultcode"]) == (400, "Client")
    assert "Host header" in fault["faultstring"]


def test_unknown_host_is_400_with_a_page_in_the_console(client: Client) -> None:
    answer = client.get("/console/", headers={"host": "cloud.example.org"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_unknown_host_is_logged_in_one_line_with_the_setting() -> None:
    printed = run(
        "-c", REQUEST_WITH_UNKNOWN_HOST, DJANGO_SETTINGS_MODULE="watcher_site.settings", WATCHER_HTTPS="false"
    ).stderr
    first = json.loads(printed.splitlines()[0])
    assert "add 'cloud.example.org' to ALLOWED_HOSTS" in first["event"]
    assert "Traceback" not in printed


def test_favicon_is_served(client: Client) -> None:
    answer = client.get("/favicon.ico", follow=True)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")
