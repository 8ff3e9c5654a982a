"""The foreground applier of one plan, step by step without threads, and its output."""

import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone
from rich.console import Console

from actions.models import Action
from plans.applier import foreground
from plans.applier.applier import Applier
from plans.applier.foreground import Choice, Display, ForegroundApplier
from plans.management.commands import apply_plan
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.inline import InlineExecutor
from watcher_site.models import Service
from watcher_site.processes.main_loop import main_loop
from watcher_site.refusals import NotFound

pytestmark = pytest.mark.django_db


@pytest.fixture
def shown() -> StringIO:
    return StringIO()


@pytest.fixture
def watch(shown: StringIO, settings: object) -> Callable[[ActionPlan], ForegroundApplier]:
    settings.POLL_INTERVAL = 0
    return lambda plan: ForegroundApplier(plan, InlineExecutor(), Display(shown), by="alice")


def run(applier: ForegroundApplier) -> ActionPlan:
    """Step until the plan ended or the applier is stopping."""
    for _ in range(100):
        applier.step()
        if applier.is_idle or applier.stopping:
            break
        applier.collect(0)
    return applier.shown.plan


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def test_only_the_given_plan_is_run(watch: Callable[[ActionPlan], ForegroundApplier]) -> None:
    plan, other = (make_plan({"a": [], "b": ["a"]}, state="PENDING") for _ in range(2))
    orphan = make_plan({"a": []}, state="ONGOING")
    assert run(watch(plan)).state == "SUCCEEDED"
    assert (again(other).state, again(orphan).applier) == ("PENDING", None)


def test_actions_that_do_not_succeed_are_printed(
    watch: Callable[[ActionPlan], ForegroundApplier], shown: StringIO, cloud_admin: User
) -> None:
    plan = make_plan({"a": [], "b": [], "c": []}, state="PENDING")
    for name, switch in (("a", "fail_execute"), ("b", "skip_pre_condition")):
        Action.objects.filter(pk=action(plan, name).pk).update(input_parameters={"message": name, switch: True})
    assert run(watch(plan)).state == "FAILED"
    lines = shown.getvalue().splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        f"FAILED nop a ({action(plan, 'a').uuid})",
        f"SKIPPED nop b ({action(plan, 'b').uuid})",
    ]


def test_actions_that_ended_earlier_are_not_printed(
    watch: Callable[[ActionPlan], ForegroundApplier], shown: StringIO
) -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    skipped = action(plan, "a")
    skipped.skip("alice")
    skipped.save_state()
    run(watch(plan))
    assert shown.getvalue() == ""


def test_number_of_printed_actions_is_limited(
    watch: Callable[[ActionPlan], ForegroundApplier], shown: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreground, "MOST_NAMED", 2)
    plan = make_plan({str(number): [] for number in range(5)}, state="PENDING")
    applier = watch(plan)
    again(plan).abandon("bob")
    assert run(applier).state == "CANCELLED"
    assert [line.split(" (")[0] for line in shown.getvalue().splitlines()] == [
        "CANCELLED nop 0",
        "CANCELLED nop 1",
        "… and 3 more.",
    ]


def test_plan_run_by_another_applier_is_followed(
    watch: Callable[[ActionPlan], ForegroundApplier], shown: StringIO
) -> None:
    other = Service.register(Service.APPLIER, "elsewhere")
    plan = make_plan({"a": []}, state="ONGOING", applier=other, hostname="elsewhere")
    applier = watch(plan)
    applier.step()
    assert (plan.actions.get().state, applier.is_idle) == ("PENDING", False)
    assert shown.getvalue() == "The applier on elsewhere runs it; this follows its work.\n"
    plan.actions.update(state="SUCCEEDED")
    ActionPlan.objects.filter(pk=plan.pk).update(state="SUCCEEDED", applier=None)
    assert run(applier).state == "SUCCEEDED"


def test_plan_of_a_dead_applier_is_taken_over(watch: Callable[[ActionPlan], ForegroundApplier]) -> None:
    other = Service.register(Service.APPLIER, "elsewhere")
    plan = make_plan({"a": []}, state="ONGOING", applier=other, hostname="elsewhere")
    applier = watch(plan)
    applier.step()
    Service.objects.filter(pk=other.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    assert run(applier).state == "SUCCEEDED"


def test_reason_for_waiting_is_printed_once(
    watch: Callable[[ActionPlan], ForegroundApplier], shown: StringIO, settings: object
) -> None:
    plan = make_plan({"a": []}, state="PENDING", opens_at=datetime(2100, 1, 31, 21, tzinfo=UTC))
    applier = watch(plan)
    applier.show()
    applier.show()
    ActionPlan.objects.filter(pk=plan.pk).update(suspended_by="bob")
    applier.show()
    assert shown.getvalue().splitlines() == [
        "Nothing more of it begins before 2100-01-31 21:00:00 UTC.",
        "Suspended by bob: nothing more of it begins until somebody resumes it.",
    ]


def choose_on_interrupt(monkeypatch: pytest.MonkeyPatch, applier: ForegroundApplier, choice: Choice) -> None:
    monkeypatch.setattr(applier.display, "ask", lambda: choice)
    applier.interrupted = True


def test_interrupt_can_cancel_the_plan(
    watch: Callable[[ActionPlan], ForegroundApplier], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    applier = watch(plan)
    choose_on_interrupt(monkeypatch, applier, Choice.CANCEL)
    ended = run(applier)
    assert (ended.state, ended.status_message) == ("CANCELLED", "Action plan was cancelled by alice.")


def test_interrupt_can_leave_the_plan_to_other_appliers(
    watch: Callable[[ActionPlan], ForegroundApplier], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    applier = watch(plan)
    choose_on_interrupt(monkeypatch, applier, Choice.LEAVE)
    run(applier)
    applier.stop()
    assert (again(plan).state, again(plan).applier) == ("ONGOING", None)


def test_interrupt_can_continue_the_plan(
    watch: Callable[[ActionPlan], ForegroundApplier], monkeypatch: pytest.MonkeyPatch
) -> None:
    applier = watch(make_plan({"a": []}, state="PENDING"))
    choose_on_interrupt(monkeypatch, applier, Choice.GO_ON)
    assert run(applier).state == "SUCCEEDED"


def test_applier_that_waits_for_an_answer_does_not_count_as_hung(
    watch: Callable[[ActionPlan], ForegroundApplier], monkeypatch: pytest.MonkeyPatch
) -> None:
    applier = watch(make_plan({"a": []}, state="PENDING"))
    problems = []

    def answer_after_an_hour() -> Choice:
        monkeypatch.setattr(main_loop, "turned", main_loop.turned - 3600)
        problems.append(main_loop.find_problem())
        return Choice.GO_ON

    monkeypatch.setattr(applier.display, "ask", answer_after_an_hour)
    applier.interrupted = True
    applier.run(once=True)
    assert problems == [None]


def test_plan_that_ended_before_the_answer_is_not_cancelled(
    watch: Callable[[ActionPlan], ForegroundApplier], monkeypatch: pytest.MonkeyPatch, shown: StringIO
) -> None:
    plan = make_plan(state="SUCCEEDED")
    applier = watch(plan)
    choose_on_interrupt(monkeypatch, applier, Choice.CANCEL)
    assert run(applier).state == "SUCCEEDED"
    assert shown.getvalue() == "Not cancelled: the action plan is SUCCEEDED.\n"


def test_plan_that_ended_and_was_deleted_during_the_cancellation_is_not_cancelled(
    watch: Callable[[ActionPlan], ForegroundApplier], monkeypatch: pytest.MonkeyPatch, shown: StringIO
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    abandon = ActionPlan.abandon

    def delete_and_abandon(late: ActionPlan, by: str) -> None:
        ActionPlan.objects.filter(pk=late.pk).update(state="SUCCEEDED", deleted_at=timezone.now())
        abandon(late, by)

    monkeypatch.setattr(ActionPlan, "abandon", delete_and_abandon)
    applier = watch(plan)
    choose_on_interrupt(monkeypatch, applier, Choice.CANCEL)
    run(applier)
    assert shown.getvalue().startswith("Not cancelled: the action plan is SUCCEEDED.\n")


def test_cancellation_of_a_purged_plan_is_refused_with_its_name(
    watch: Callable[[ActionPlan], ForegroundApplier], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    abandon = ActionPlan.abandon

    def purge_and_abandon(late: ActionPlan, by: str) -> None:
        ActionPlan.objects.filter(pk=late.pk).delete()
        abandon(late, by)

    monkeypatch.setattr(ActionPlan, "abandon", purge_and_abandon)
    applier = watch(plan)
    choose_on_interrupt(monkeypatch, applier, Choice.CANCEL)
    with pytest.raises(NotFound, match=f"^ActionPlan {plan.uuid} could not be found$"):
        run(applier)


def test_interrupt_without_a_terminal_leaves_the_plan_to_other_appliers(shown: StringIO) -> None:
    assert Display(shown).ask() is Choice.LEAVE


@pytest.mark.parametrize(
    ("answers", "choice"),
    [
        (["maybe", "continue", "l"], Choice.LEAVE),
        (["?", ""], Choice.GO_ON),
        (["x", " Cancel "], Choice.CANCEL),
        (["c"], Choice.CANCEL),
    ],
)
def test_unknown_answer_repeats_the_question(
    shown: StringIO, monkeypatch: pytest.MonkeyPatch, answers: list[str], choice: Choice
) -> None:
    display = Display(shown)
    display.console = Console(file=shown, force_terminal=True)
    monkeypatch.setattr(display, "redirect_log", lambda stream: None)
    keyboard, terminal = os.openpty()
    with open(keyboard, "wb", buffering=0) as keys, open(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        keys.write("".join(f"{answer}\n" for answer in answers).encode())
        assert display.ask() is choice
    assert shown.getvalue().count("Please answer c, l, or just Enter.") == len(answers) - 1


CONTINUED = "The next free applier continues it then."


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "The action plan is PENDING. The next free applier continues it."),
        (
            {"suspended_by": "bob"},
            "The action plan is PENDING. Suspended by bob: nothing more of it begins until somebody resumes it. "
            + CONTINUED,
        ),
        (
            {"opens_at": datetime(2100, 1, 31, 21, tzinfo=UTC)},
            "The action plan is PENDING. Nothing more of it begins before 2100-01-31 21:00:00 UTC. " + CONTINUED,
        ),
        (
            {
                "window": {"opens": "22:00", "closes": "04:00", "weekdays": ["monday"], "last_day": "2020-01-06"},
                "closes_at": datetime(2020, 1, 7, 4, tzinfo=UTC),
            },
            "The action plan is PENDING. Its maintenance window is over: nothing more of it begins until it has"
            " another one. " + CONTINUED,
        ),
    ],
)
def test_message_for_a_plan_left_to_others_says_when_it_continues(
    watch: Callable[[ActionPlan], ForegroundApplier],
    shown: StringIO,
    monkeypatch: pytest.MonkeyPatch,
    columns: dict[str, object],
    words: str,
) -> None:
    applier = watch(make_plan({"a": []}, state="PENDING", **columns))
    monkeypatch.setattr(applier, "run", lambda **_: applier.show())
    monkeypatch.setattr(applier, "stop_on_signals", lambda: None)
    assert apply_plan.run(applier, applier.display) == "PENDING"
    assert shown.getvalue().splitlines()[-1] == words


@pytest.mark.parametrize("state", ["SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_ended_plan_is_refused(state: str) -> None:
    with pytest.raises(CommandError, match=f"is {state} already"):
        call_command("apply_plan", str(make_plan(state=state).uuid))


def test_refusal_of_a_failed_plan_refers_to_continue_plan() -> None:
    with pytest.raises(CommandError, match="continue_plan makes a plan"):
        call_command("apply_plan", str(make_plan(state="FAILED").uuid))


def test_unknown_plan_is_refused() -> None:
    with pytest.raises(CommandError, match="There is no action plan 7a7c9b4e"):
        call_command("apply_plan", "7a7c9b4e-8d0d-4a58-8a1f-1f6f5f1d2a11")


@pytest.mark.parametrize(("workers", "executor"), [(None, "of the settings"), (3, "threads")])
def test_number_of_workers_selects_the_thread_executor(
    workers: int | None, executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A given number replaces the executor of the settings."""
    monkeypatch.setattr(apply_plan, "make_executor", lambda workers: "of the settings")
    monkeypatch.setattr(apply_plan, "ThreadExecutor", lambda workers: "threads")
    assert apply_plan.executor_for(workers) == executor


def test_ctrl_c_exits_immediately_after_the_hint_is_printed(
    watch: Callable[[ActionPlan], ForegroundApplier], monkeypatch: pytest.MonkeyPatch
) -> None:
    applier = watch(make_plan({"a": []}, state="PENDING"))
    handlers: list[object] = []
    monkeypatch.setattr(applier.display, "print", lambda text: handlers.append(signal.getsignal(signal.SIGINT)))
    monkeypatch.setattr(applier, "jobs", {1: None})
    monkeypatch.setattr(Applier, "stop", lambda self: None)
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        applier.stop()
    finally:
        signal.signal(signal.SIGINT, previous)
    assert handlers == [foreground.exit_immediately]
