"""The length of error messages is bounded for input of any length."""

import json

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from tests.api import Caller, fault
from tests.builders import make_audit
from watcher_site.messages import cut
from watcher_site.refusals import LONGEST_MESSAGE, Invalid

pytestmark = pytest.mark.django_db

LONG = "x" * 400_000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/audits", {LONG: 1}),
        ("/audits", {"audit_type": LONG, "goal": "dummy"}),
        ("/audits", {"audit_type": "ONESHOT", "goal": LONG}),
        ("/audit_templates", {"name": LONG, "goal": "dummy"}),
        ("/audits", [LONG]),
        ("/servers", {"server": {"name": LONG}}),
    ],
)
def test_api_error_quotes_only_the_beginning_of_a_body(cloud_admin: User, path: str, body: object) -> None:
    answer = Caller(cloud_admin, "latest").post(path, body)
    assert 400 <= answer.status_code < 500
    assert len(answer.content) < 3 * LONGEST_MESSAGE


def test_patch_error_quotes_only_the_beginning_of_the_patch(cloud_admin: User) -> None:
    audit = make_audit()
    steps = [{"op": "replace", "path": f"/{LONG}", "value": LONG}]
    answer = Caller(cloud_admin, "latest").patch(f"/audits/{audit.uuid}", steps)
    assert answer.status_code == 400
    assert len(answer.content) < 3 * LONGEST_MESSAGE
    assert "x" * 1000 in fault(answer)


def test_query_error_quotes_only_the_beginning_of_the_query(cloud_admin: User) -> None:
    answer = Caller(cloud_admin, "latest").get(f"/audits?sort_key={LONG}")
    assert answer.status_code == 400
    assert len(answer.content) < 3 * LONGEST_MESSAGE


def test_errors_of_the_mounts_are_bounded(cloud_admin: User) -> None:
    caller = Caller(cloud_admin, None)
    body = json.dumps({LONG: {}})
    answer = caller.client.post("/orchestration/v1/p/stacks", body, content_type="application/json")
    assert len(answer.content) < 4 * LONGEST_MESSAGE


def test_command_error_is_bounded(db: None) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("create_token", LONG)
    assert len(str(refused.value)) <= LONGEST_MESSAGE


def test_message_of_one_long_word_is_cut_within_the_word() -> None:
    assert cut("server: name: " + LONG, 100) == "server: name: " + "x" * 85 + "…"


def test_message_of_many_words_is_cut_between_words() -> None:
    assert cut("word " * 100, 20) == "word word word word…"


def test_short_message_is_unchanged() -> None:
    assert str(Invalid("name: must be short.\nIt is not.")) == "name: must be short.\nIt is not."
