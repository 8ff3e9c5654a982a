"""The calling context of a plan: stored encrypted, passed to its action types, and not shown to users."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from actions.types.base import DONE, ActionContext, ActionType, Outcome
from actions.types.nop import Nop
from plans.management.commands import apply_plan
from plans.models import ActionPlan
from tests.api import Caller
from tests.builders import make_plan
from tests.plans.applier.test_commits import counted
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.refusals import Invalid
from watcher_site.request_context import CallingContext, seal, unseal

pytestmark = pytest.mark.django_db


def stored_context() -> CallingContext:
    return unseal(ActionPlan.objects.get().context)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/start", None),
        ("post", "/start", {"start_at": "2099-01-01T00:00:00Z"}),
        ("patch", "", [{"op": "replace", "path": "/state", "value": "PENDING"}]),
    ],
)
def test_api_start_stores_the_user_and_the_request_id(cloud_admin: User, method: str, path: str, body: Any) -> None:
    plan = make_plan({"a": []})
    answer = getattr(Caller(cloud_admin, "1.12"), method)(f"/action_plans/{plan.uuid}{path}", body)
    assert answer.status_code == 200, answer.content
    assert dict(stored_context()) == {"user": "alice", "request_id": answer.headers["x-openstack-request-id"]}


def test_console_start_stores_the_user_and_the_request_id(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = make_plan({"a": []})
    answer = client.post(reverse("plans:start", args=[plan.uuid]))
    assert dict(stored_context()) == {"user": "alice", "request_id": answer.headers["x-openstack-request-id"]}


@pytest.mark.parametrize(("options", "person"), [((), "rosa"), (("--as=alice",), "alice")])
def test_command_stores_its_user_or_the_user_named_by_as(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], person: str
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "rosa")
    call_command("schedule_plan", str(make_plan({"a": []}).uuid), "--start", *options)
    assert dict(stored_context()) == {"user": person}


def test_apply_plan_stores_the_user_named_by_as(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_plan, "executor_for", lambda _: InlineExecutor())
    monkeypatch.setattr(apply_plan, "run", lambda *_: "SUCCEEDED")
    call_command("apply_plan", str(make_plan({"a": []}).uuid), "--as=alice")
    assert dict(stored_context()) == {"user": "alice"}


def watch(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return a list to which each nop action adds its calling context."""
    seen: list[dict[str, Any]] = []

    def execute(self: ActionType) -> Outcome:
        seen.append(dict(self.context.calling_context))
        return DONE

    monkeypatch.setattr(Nop, "execute", execute)
    return seen


def test_action_types_read_the_calling_context(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(monkeypatch)
    make_plan({"a": []}).launch(CallingContext(user="alice", token="secret"))
    run_waiting()
    assert seen == [{"user": "alice", "token": "secret"}]


def test_plan_started_without_a_calling_context_has_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(monkeypatch)
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert seen == [{}]


def test_calling_context_is_queried_only_when_it_is_read() -> None:
    make_plan({"a": []}).launch(CallingContext(user="alice"))
    with counted() as statements:
        run_waiting()
    assert not [sql for sql in statements if sql.startswith('SELECT "plans_actionplan"."context" AS "context"')]
    assert not [sql for sql in statements if 'SELECT "plans_actionplan"."context" FROM' in sql]


def test_stored_calling_context_is_encrypted() -> None:
    make_plan({"a": []}).launch(CallingContext(user="alice", token="secret"))
    stored = ActionPlan.objects.get().context
    assert "secret" not in stored
    assert "alice" not in stored


@pytest.mark.parametrize("end", ["run", "cancel"])
def test_calling_context_is_deleted_when_the_plan_ends(end: str) -> None:
    plan = make_plan({"a": []})
    plan.launch(CallingContext(user="alice"))
    run_waiting() if end == "run" else plan.abandon("alice")
    assert ActionPlan.objects.get().context is None


def test_calling_context_is_deleted_when_plans_are_cancelled_together() -> None:
    make_plan({"a": []}).launch(CallingContext(user="alice"))
    ActionPlan.objects.all().cancel_unfinished("enough")
    assert ActionPlan.objects.get().context is None


def test_api_and_console_show_only_the_user_of_the_calling_context(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = make_plan({"a": []})
    plan.launch(CallingContext(user="alice", user_id="id-of-alice", token="secret-token"))
    stored = ActionPlan.objects.get().context
    shown = [
        Caller(cloud_admin, "1.12").get(f"/action_plans/{plan.uuid}").content.decode(),
        Caller(cloud_admin, "1.12").get("/actions/detail").content.decode(),
        client.get(reverse("plans:detail", args=[plan.uuid])).content.decode(),
    ]
    secrets = ("id-of-alice", "secret-token", stored, '"context"')
    assert not [text for text in shown if any(secret in text for secret in secrets)]


def test_representations_of_the_calling_context_do_not_contain_the_token() -> None:
    context = CallingContext(token="secret")
    assert "secret" not in f"{context} {context!r} {[context]} {ActionContext(find_caller=lambda: context)}"


def test_fallback_key_decrypts_a_context_sealed_with_the_old_key(settings: Settings) -> None:
    sealed = seal({"user": "alice"})
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key of sufficient length, made for this test alone"
    assert unseal(sealed) == {"user": "alice"}
    again = seal({"user": "alice"})
    settings.SECRET_KEY_FALLBACKS = []
    assert unseal(again) == {"user": "alice"}


def test_context_sealed_with_a_lost_key_is_refused_and_fails_the_action(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    watch(monkeypatch)
    plan = make_plan({"a": []})
    plan.launch(CallingContext(user="alice"))
    settings.SECRET_KEY = "another key of sufficient length, made for this test alone"
    with pytest.raises(Invalid, match="SECRET_KEY_FALLBACKS does not name the old key"):
        stored_context()
    run_waiting()
    assert "The calling context cannot be read" in str(plan.actions.get().status_message)
