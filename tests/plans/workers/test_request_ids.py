"""The id of the request that started a plan, in the log of appliers and workers."""

from typing import Any

import pytest
from pytest_django import Settings
from structlog.contextvars import get_contextvars

from actions.types.base import DONE, Outcome
from actions.types.nop import Nop
from plans.models import ActionPlan
from plans.workers.messages import JobMessage
from tests.api import Caller
from tests.builders import make_plan
from tests.plans.inline import run_waiting
from watcher_site.request_context import CallingContext, seal

REQUEST = "req-7f986313-418d-4229-a3fe-abf0dca14347"
MESSAGE: dict[str, Any] = {
    "work": "execute",
    "action": 1,
    "plan": 2,
    "applier": 3,
    "standing": [],
    "queue": "q",
    "reply_to": "r",
}


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The context of log lines during the execution of each action."""
    found: list[dict[str, Any]] = []

    def execute(self: Nop) -> Outcome:
        found.append(get_contextvars())
        return DONE

    monkeypatch.setattr(Nop, "execute", execute)
    return found


def test_log_lines_of_an_action_have_the_id_of_the_request_that_started_its_plan(
    api: Caller, contexts: list[dict[str, Any]]
) -> None:
    plan = make_plan({"a": []})
    answer = api.post(f"/action_plans/{plan.uuid}/start")
    run_waiting()
    assert [found["request_id"] for found in contexts] == [answer["x-openstack-request-id"]]


@pytest.mark.django_db
def test_plan_started_without_a_request_has_no_request_id(contexts: list[dict[str, Any]]) -> None:
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert "request_id" not in contexts[0]


@pytest.mark.django_db
def test_context_sealed_with_a_lost_key_has_no_request_id(settings: Settings) -> None:
    plan = ActionPlan(context=seal(CallingContext(request_id=REQUEST)))
    assert plan.request_id == REQUEST
    settings.SECRET_KEY = "another key of at least fifty characters, by far enough"
    assert plan.request_id == ""


def test_message_to_a_worker_contains_the_request_id() -> None:
    message = JobMessage.of({**MESSAGE, "request_id": REQUEST})
    assert JobMessage.of(message.as_arguments()).request_id == REQUEST


def test_message_of_the_previous_release_has_no_request_id() -> None:
    assert JobMessage.of(MESSAGE).request_id == ""
