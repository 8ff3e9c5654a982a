"""A request with another host's name is refused, in the shape of its side of the site, and in one line of the log."""

import json

import pytest
from django.test import Client

from tests.watcher_site.site_process import run

ASK = """
import django; django.setup()
from django.test import Client
Client().get("/v1/audits", headers={"host": "cloud.example.org"})
"""


@pytest.mark.parametrize("path", ["/", "/v1/audits", "/readyz"])
@pytest.mark.parametrize("host", ["cloud.example.org", "no host!"])
def test_the_api_answers_the_error_body_that_names_the_header(client: Client, path: str, host: str) -> None:
    answer = client.get(path, headers={"host": host})
    fault = json.loads(json.loads(answer.content)["error_message"])
    assert (answer.status_code, fault["faultcode"]) == (400, "Client")
    assert "Host header" in fault["faultstring"]


def test_the_console_answers_a_page(client: Client) -> None:
    answer = client.get("/console/", headers={"host": "cloud.example.org"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "text/html; charset=utf-8")


def test_the_log_names_the_setting_in_one_line() -> None:
    printed = run("-c", ASK, DJANGO_SETTINGS_MODULE="watcher_site.settings", WATCHER_HTTPS="false").stderr
    first = json.loads(printed.splitlines()[0])
    assert "add 'cloud.example.org' to ALLOWED_HOSTS" in first["event"]
    assert "Traceback" not in printed


def test_the_icon_that_browsers_ask_for_is_there(client: Client) -> None:
    answer = client.get("/favicon.ico", follow=True)
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")
