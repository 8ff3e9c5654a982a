"""The command ``preflight_plan``."""

from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from actions.models import Action
from cluster.models import Synchronization
from plans.models import ActionPlan
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db

Printed = pytest.CaptureFixture[str]


def run(plan: ActionPlan) -> int:
    """Run the command, and return its exit status."""
    try:
        call_command("preflight_plan", str(plan.uuid))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_command_exits_with_0_if_all_actions_would_succeed(capsys: Printed) -> None:
    assert run(make_plan({"a": [], "b": ["a"]})) == 0
    assert capsys.readouterr().out == "Foreseen: 2 SUCCEEDED.\n"


@pytest.mark.parametrize(
    ("switch", "outcome", "message"),
    [
        ("fail_pre_condition", "FAILED ", "would fail in pre_condition: Failed in pre_condition"),
        ("skip_pre_condition", "SKIPPED", "would be skipped: Skipped in pre_condition"),
    ],
)
def test_command_exits_with_1_and_lists_actions_that_would_not_succeed(
    capsys: Printed, switch: str, outcome: str, message: str
) -> None:
    plan = make_plan({"a": [], "b": []})
    plan.actions.filter(pk=action(plan, "b").pk).update(input_parameters={"message": "b", switch: True})
    assert run(plan) == 1
    assert capsys.readouterr().out == (
        f"{outcome}    {action(plan, 'b').uuid}  nop b  {message}\nForeseen: 1 SUCCEEDED, 1 {outcome.strip()}.\n"
    )


def test_command_exits_with_3_if_an_outcome_is_unknown(capsys: Printed) -> None:
    plan = make_plan({"a": []})
    Action.objects.create(action_plan=plan, action_type="nop", input_parameters={"message": "b"}, has_derived=True)
    assert run(plan) == 3
    assert capsys.readouterr().out.endswith("Foreseen: 1 SUCCEEDED, 1 UNKNOWN.\n")


def test_command_counts_ended_actions(capsys: Printed) -> None:
    plan = make_plan({"a": [], "b": []})
    skipped = action(plan, "a")
    skipped.skip("alice")
    skipped.save_state()
    assert run(plan) == 0
    assert capsys.readouterr().out == "Foreseen: 1 SUCCEEDED. Ended already: 1.\n"


def test_command_shows_when_a_mirrored_cloud_was_read(settings: Settings, capsys: Printed) -> None:
    settings.CLOUD = "tests.plans.preflight.test_preflight.MirroredCloud"
    plan = make_plan({"a": []})
    run(plan)
    Synchronization.objects.create(succeeded_at="2026-01-01T10:00:00Z")
    run(plan)
    never, read = capsys.readouterr().out.splitlines()
    assert never.endswith("The cloud was never read: run manage.py sync_cluster.")
    assert read.endswith("The cloud as it was read 2026-01-01 10:00:00 UTC.")


@pytest.mark.parametrize(
    ("plan", "words"),
    [("x", "There is no action plan x."), (str(UUID(int=1)), "There is no action plan 00000000")],
)
def test_command_refuses_an_invalid_or_unknown_plan(plan: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("preflight_plan", plan)


def test_command_refuses_an_ended_plan_with_exit_status_2() -> None:
    with pytest.raises(CommandError, match="nothing of it begins any more") as refusal:
        call_command("preflight_plan", str(make_plan({"a": []}, state="SUCCEEDED").uuid))
    assert refusal.value.returncode == 2
