"""Stored results of an action: outputs for others, and data for its next attempt."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.engine import execution
from actions.models import Action
from actions.types.base import DONE, ActionContext, ActionFailed, ActionType, Answer, LeaseLost, Outcome, Recovery
from actions.types.nop import Nop
from tests.actions.engine.test_interruptions import FakeLease
from tests.api import Caller
from tests.builders import action, make_plan
from tests.plans.deriving import behave, deriving
from tests.plans.inline import run_waiting

pytestmark = pytest.mark.django_db


def make_action(state: str = "PENDING", **columns: Any) -> Action:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state=state, attempt=0 if state == "PENDING" else 1, **columns)
    return plan.actions.get()


def run(monkeypatch: pytest.MonkeyPatch, one: Action | None = None, **methods: Any) -> Action:
    for name, method in methods.items():
        monkeypatch.setattr(Nop, name, method)
    one = one or make_action()
    work = execution.execute if one.state == "PENDING" else execution.recover
    work(one, FakeLease())
    return Action.objects.get(pk=one.pk)


def putting(values: dict[str, Any], outcome: Outcome | Exception = DONE) -> Any:
    def execute(self: ActionType) -> Outcome:
        self.context.outputs.update(values)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return execute


def test_outputs_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, execute=putting({"nodes": ["a"]})).outputs == {"nodes": ["a"]}


def test_action_without_outputs_stores_an_empty_object(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch).outputs == {}


def test_failed_action_adds_the_error_to_its_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    one = run(monkeypatch, execute=putting({"moved": 3}, ActionFailed("no capacity")))
    assert (one.state, one.outputs) == ("FAILED", {"moved": 3, "error": "no capacity"})


def test_outputs_contain_only_the_class_name_of_an_unexpected_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, execute=putting({}, KeyError("secret"))).outputs == {"error": "KeyError"}


@pytest.mark.parametrize("answer", [Answer.CANCEL, Answer.OK])
def test_outputs_are_stored_for_success_and_cancellation(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
    assert run(monkeypatch, execute=putting({"moved": 3}, Outcome(answer))).outputs == {"moved": 3}


def test_deferred_attempt_stores_no_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    one = run(monkeypatch, execute=putting({"moved": 3}, Outcome(Answer.RETRY, "busy")))
    assert (one.state, one.outputs) == ("PENDING", {})


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"x": "\0"}, "outputs.x: must not contain NUL characters."),
        ({"x": float("nan")}, "outputs.x: must not contain infinite or undefined numbers."),
        ({"x": object()}, "outputs: must contain only JSON values."),
    ],
)
def test_unstorable_outputs_are_replaced_by_an_error_and_the_action_succeeds(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], words: str
) -> None:
    one = run(monkeypatch, execute=putting(values))
    assert (one.state, one.outputs) == ("SUCCEEDED", {"error": words})


def test_outputs_of_derived_actions_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def go_on(self: ActionType) -> Outcome:
        seen.extend(derived.outputs for derived in self.context.derived)
        return DONE

    behave(monkeypatch, a=deriving({"x": []}), a_goes_on=go_on, x=putting({"moved": 3}))
    make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert seen == [{"moved": 3}]


def test_outputs_from_before_the_wait_for_derived_actions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def derive(self: ActionType) -> Outcome:
        self.context.outputs["called"] = 1
        return deriving({"x": []})(self)

    behave(monkeypatch, a=derive, a_goes_on=putting({"moved": 3}))
    plan = make_plan({"a": []}, state="PENDING")
    run_waiting()
    assert action(plan, "a").outputs == {"called": 1, "moved": 3}


def saving(data: dict[str, Any]) -> Any:
    def execute(self: ActionType) -> Outcome:
        self.context.save_data(data)
        assert self.context.data == data
        return DONE

    return execute


def test_data_are_saved_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def execute(self: ActionType) -> Outcome:
        self.context.save_data({"step": 1})
        seen.append(Action.objects.get().data)
        return DONE

    assert run(monkeypatch, execute=execute).data == {"step": 1}
    assert seen == [{"step": 1}]


def test_next_attempt_reads_the_saved_data(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def recover(self: ActionType) -> Recovery:
        seen.append(dict(self.context.data))
        return Recovery.DONE

    run(monkeypatch, make_action("ONGOING", data={"step": 1}), recover=recover)
    assert seen == [{"step": 1}]


def test_worker_of_an_earlier_attempt_cannot_save_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def execute(self: ActionType) -> Outcome:
        Action.objects.update(attempt=7)
        with pytest.raises(LeaseLost):
            self.context.save_data({"step": 1})
        return DONE

    assert run(monkeypatch, execute=execute).data == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"x": "\0"}, "data.x: must not contain NUL characters."),
        ({"x": object()}, "data: must contain only JSON values."),
        (["x"], "data: must be an object."),
    ],
)
def test_unstorable_data_fail_the_action(monkeypatch: pytest.MonkeyPatch, data: Any, words: str) -> None:
    one = run(monkeypatch, execute=saving(data))
    assert (one.state, one.outputs, one.data) == ("FAILED", {"error": words}, {})


def test_context_without_an_action_has_data_and_outputs() -> None:
    context = ActionContext()
    context.save_data({"step": 1})
    assert (context.data, context.outputs) == ({"step": 1}, {})


def test_api_shows_outputs_and_data_since_1_12(cloud_admin: User) -> None:
    one = make_action(outputs={"moved": 3}, data={"step": 1})
    shown = Caller(cloud_admin, "1.12").get(f"/actions/{one.uuid}").json()
    assert (shown["outputs"], shown["data"]) == ({"moved": 3}, {"step": 1})
    before = Caller(cloud_admin, "1.11").get(f"/actions/{one.uuid}").json()
    assert not {"outputs", "data"} & before.keys()


def test_console_shows_the_outputs(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    one = make_action("SUCCEEDED", outputs={"moved": 3})
    assert "moved" in client.get(reverse("actions:detail", args=[one.uuid])).content.decode()
