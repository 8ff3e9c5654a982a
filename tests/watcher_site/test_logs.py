"""Logs are one JSON object a line or readable text, and contain no secrets."""

import json
import logging
import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.watcher_site.site_process import run
from watcher_site.configuration.log_filters import TracebackOfFaults
from watcher_site.gunicorn import AccessLogger

LOG_EVENTS = """
import logging, warnings, structlog, django
django.setup()

def log_in(password):
    raise LookupError("no such user")

try:
    log_in(password="open" + "sesame")
except LookupError:
    logging.getLogger("django.request").exception("Failed: %s", "/login")
structlog.get_logger("plans").info("Plan %s started.", 7, owner="a1")
logging.getLogger("gunicorn.error").info("Listening")
warnings.warn("old")
"""


def logged_output(**variables: str) -> str:
    return run("-c", LOG_EVENTS, DJANGO_SETTINGS_MODULE="watcher_site.settings", **variables).stderr


def test_every_logger_writes_one_json_object_a_line() -> None:
    lines = [json.loads(line) for line in logged_output().splitlines()]
    assert [line["logger"] for line in lines] == ["django.request", "plans", "gunicorn.error", "py.warnings"]


def test_event_values_are_separate_fields() -> None:
    line = json.loads(logged_output().splitlines()[1])
    assert (line["event"], line["owner"], line["level"]) == ("Plan 7 started.", "a1", "info")


def test_request_line_of_django_has_the_request_id() -> None:
    code = """
import django
django.setup()
from django.test import Client
print(Client().get("/no/such", headers={"host": "localhost"})["x-openstack-request-id"])
"""
    ended = run("-c", code, DJANGO_SETTINGS_MODULE="watcher_site.settings", WATCHER_HTTPS="false")
    (line,) = [json.loads(text) for text in ended.stderr.splitlines()]
    assert (line["event"], line["request_id"]) == ("Not Found: /no/such", ended.stdout.strip())


def test_exception_is_a_field_of_its_event() -> None:
    assert "LookupError: no such user" in json.loads(logged_output().splitlines()[0])["exception"]


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_local_variables_of_an_exception_are_not_logged(log_format: str) -> None:
    printed = logged_output(WATCHER_LOG_FORMAT=log_format)
    assert "LookupError" in printed
    assert "opensesame" not in printed


def test_refused_webhook_address_is_not_logged() -> None:
    assert not logging.getLogger("requests_hardened.ip_filter").isEnabledFor(logging.WARNING)


def test_console_format_has_no_json_and_no_colours_in_a_file() -> None:
    printed = logged_output(WATCHER_LOG_FORMAT="console")
    assert "Plan 7 started." in printed
    assert not {"{", "\x1b"} & set(printed)


LOG_CONTROL_CHARACTERS = r"""
import logging, structlog, django
django.setup()
logging.getLogger("django.request").warning("Not Found: %s", "/plans/\x00\x1b[31m\x9b\nforged\ttab/")
structlog.get_logger("plans").info("request", path="/\x00\x85/")
try:
    raise LookupError("red \x1b[31m")
except LookupError:
    structlog.get_logger("plans").exception("failed")
"""


def test_control_characters_are_escaped_in_the_console_format() -> None:
    variables = {"DJANGO_SETTINGS_MODULE": "watcher_site.settings", "WATCHER_LOG_FORMAT": "console"}
    printed = run("-c", LOG_CONTROL_CHARACTERS, **variables).stderr
    assert r"/plans/\x00\x1b[31m\x9b\nforged" + "\ttab/" in printed
    assert r"path=/\x00\x85/" in printed
    assert r"LookupError: red \x1b[31m" in printed
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", printed)


@pytest.mark.parametrize(("status", "shown"), [(403, False), (404, False), (500, True)])
def test_traceback_is_logged_only_for_internal_errors(status: int, shown: bool) -> None:
    record = logging.LogRecord("django.request", logging.WARNING, "", 0, "Forbidden", (), (LookupError, None, None))
    record.status_code = status
    assert TracebackOfFaults().filter(record)
    assert bool(record.exc_info) == shown


def access(**environ: str) -> dict[str, Any]:
    answer = SimpleNamespace(status_code=404, sent=12, headers=[("X-OpenStack-Request-Id", "req-1")])
    # Created without its settings, with which gunicorn would add handlers to its loggers for the whole suite.
    logger = AccessLogger.__new__(AccessLogger)
    with capture_logs() as lines:
        logger.access(answer, None, {"REQUEST_METHOD": "GET", **environ}, timedelta(microseconds=1234))
    return dict(lines[0])


def test_access_log_has_one_line_with_the_outcome_of_a_request() -> None:
    line = access(PATH_INFO="/v1/actions", REMOTE_ADDR="10.0.0.9")
    assert (line["method"], line["path"], line["status"], line["client"]) == ("GET", "/v1/actions", 404, "10.0.0.9")
    assert (line["milliseconds"], line["request_id"]) == (1.2, "req-1")


def test_headers_and_query_of_a_request_are_not_logged() -> None:
    secrets = {"HTTP_AUTHORIZATION": "Basic c2VjcmV0", "HTTP_X_AUTH_TOKEN": "secret", "QUERY_STRING": "token=secret"}
    line = access(PATH_INFO="/v1", **secrets)
    assert not [value for value in line.values() if "c2VjcmV0" in str(value) or "secret" in str(value)]
