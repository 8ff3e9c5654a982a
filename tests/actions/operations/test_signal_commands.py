"""``manage.py signal_action`` and ``manage.py signal_plan``."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from actions.models import Action
from tests.builders import make_plan

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue().strip()


@pytest.fixture
def one() -> Action:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state="ONGOING")
    return plan.actions.get()


@pytest.mark.parametrize("name", ["uuid", "name", "short id"])
def test_signal_action_sends_a_signal_as_a_user(one: Action, name: str) -> None:
    text = {"uuid": str(one.uuid), "name": one.name, "short id": str(one.uuid)[:8]}[name]
    assert run("signal_action", text, "SUSPEND", "--as", "rosa") == "ONGOING, SUSPEND pending"
    assert one.events.get().details == "Requested by rosa."


def test_signal_plan_sends_signals_as_a_user(one: Action) -> None:
    plan = one.action_plan
    assert run("signal_plan", str(plan.uuid), "SUSPEND", "--as", "rosa") == "ONGOING, suspended"
    assert run("signal_plan", str(plan.uuid), "RESUME") == "ONGOING"
    assert run("signal_plan", str(plan.uuid), "CANCEL", "--as", "rosa") == "CANCELLING"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["signal_action", "nobody", "CANCEL"], "action: there is no action nobody."),
        (["signal_action", "nop", "STOP"], "argument signal: invalid choice: 'STOP'"),
        (["signal_plan", "7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11", "CANCEL"], "There is no action plan 7a7c9b4e"),
        (["signal_plan", "x", "CANCEL"], "There is no action plan x."),
    ],
)
def test_invalid_argument_is_refused_with_a_message_of_one_line(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words) as refusal:
        run(*arguments)
    assert "\n" not in str(refusal.value)


def test_signal_that_the_status_does_not_allow_is_refused(one: Action) -> None:
    with pytest.raises(CommandError, match=r"expected status must be one of \(SUSPENDED\)"):
        run("signal_action", str(one.uuid), "RESUME")
