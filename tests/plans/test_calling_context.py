"""On whose behalf a plan is executed: kept sealed, handed to its action types, shown to nobody."""

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


def kept() -> CallingContext:
    return unseal(ActionPlan.objects.get().context)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/start", None),
        ("post", "/start", {"start_at": "2099-01-01T00:00:00Z"}),
        ("patch", "", [{"op": "replace", "path": "/state", "value": "PENDING"}]),
    ],
)
def test_the_api_keeps_who_started_a_plan_and_in_which_request(
    cloud_admin: User, method: str, path: str, body: Any
) -> None:
    plan = make_plan({"a": []})
    answer = getattr(Caller(cloud_admin, "1.12"), method)(f"/action_plans/{plan.uuid}{path}", body)
    assert answer.status_code == 200, answer.content
    assert dict(kept()) == {"user": "alice", "request_id": answer.headers["x-openstack-request-id"]}


def test_so_does_the_console(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = make_plan({"a": []})
    answer = client.post(reverse("plans:start", args=[plan.uuid]))
    assert dict(kept()) == {"user": "alice", "request_id": answer.headers["x-openstack-request-id"]}


@pytest.mark.parametrize(("options", "person"), [((), "rosa"), (("--as=alice",), "alice")])
def test_so_does_a_command_for_its_user_or_whom_it_names(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], person: str
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "rosa")
    call_command("schedule_plan", str(make_plan({"a": []}).uuid), "--start", *options)
    assert dict(kept()) == {"user": person}


def test_so_does_a_plan_that_is_run_in_the_foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_plan, "executor_for", lambda _: InlineExecutor())
    monkeypatch.setattr(apply_plan, "run", lambda *_: "SUCCEEDED")
    call_command("apply_plan", str(make_plan({"a": []}).uuid), "--as=alice")
    assert dict(kept()) == {"user": "alice"}


def watch(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return what each nop action reads of its calling context."""
    seen: list[dict[str, Any]] = []

    def execute(self: ActionType) -> Outcome:
        seen.append(dict(self.context.calling_context))
        return DONE

    monkeypatch.setattr(Nop, "execute", execute)
    return seen


def test_action_types_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(monkeypatch)
    make_plan({"a": []}).launch(CallingContext(user="alice", token="secret"))
    run_waiting()
    assert seen == [{"user": "alice", "token": "secret"}]


def test_a_plan_that_was_started_without_one_has_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watch(monkeypatch)
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert seen == [{}]


def test_it_is_queried_when_it_is_read_and_not_before() -> None:
    make_plan({"a": []}).launch(CallingContext(user="alice"))
    with counted() as statements:
        run_waiting()
    assert not [sql for sql in statements if sql.startswith('SELECT "plans_actionplan"."context" AS "context"')]
    assert not [sql for sql in statements if 'SELECT "plans_actionplan"."context" FROM' in sql]


def test_what_is_stored_tells_nothing_of_it() -> None:
    make_plan({"a": []}).launch(CallingContext(user="alice", token="secret"))
    stored = ActionPlan.objects.get().context
    assert "secret" not in stored
    assert "alice" not in stored


@pytest.mark.parametrize("end", ["run", "cancel"])
def test_it_is_forgotten_when_the_plan_has_ended(end: str) -> None:
    plan = make_plan({"a": []})
    plan.launch(CallingContext(user="alice"))
    run_waiting() if end == "run" else plan.abandon("alice")
    assert ActionPlan.objects.get().context is None


def test_it_is_forgotten_with_the_plans_that_are_cancelled_together() -> None:
    make_plan({"a": []}).launch(CallingContext(user="alice"))
    ActionPlan.objects.all().cancel_unfinished("enough")
    assert ActionPlan.objects.get().context is None


def test_the_api_and_the_console_show_no_more_of_it_than_the_user(client: Client, cloud_admin: User) -> None:
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


def test_no_log_and_no_traceback_shows_what_is_in_it() -> None:
    context = CallingContext(token="secret")
    assert "secret" not in f"{context} {context!r} {[context]} {ActionContext(find_caller=lambda: context)}"


def test_a_new_key_reads_what_was_sealed_with_an_old_one(settings: Settings) -> None:
    sealed = seal({"user": "alice"})
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another key of sufficient length, made for this test alone"
    assert unseal(sealed) == {"user": "alice"}
    again = seal({"user": "alice"})
    settings.SECRET_KEY_FALLBACKS = []
    assert unseal(again) == {"user": "alice"}


def test_without_the_old_key_it_says_so_and_the_action_fails(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    watch(monkeypatch)
    plan = make_plan({"a": []})
    plan.launch(CallingContext(user="alice"))
    settings.SECRET_KEY = "another key of sufficient length, made for this test alone"
    with pytest.raises(Invalid, match="SECRET_KEY_FALLBACKS does not name the old key"):
        kept()
    run_waiting()
    assert "The calling context cannot be read" in str(plan.actions.get().status_message)
