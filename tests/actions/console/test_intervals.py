"""Intervals of an action (running, deferred, waiting, suspended), computed from its events."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils.translation import override

from actions.console.intervals import Kind, intervals_of, total_duration
from actions.models import Action, ActionEvent
from watcher_site.windows.durations import describe_duration

BEGINNING = datetime(2026, 11, 23, 10, tzinfo=UTC)
Result = ActionEvent.Result
Recorded = tuple[str, int, int | None, str | None]


def at(second: int) -> datetime:
    return BEGINNING + timedelta(seconds=second)


def found(state: str, *recorded: Recorded, end: int | None = None, now: int = 1000) -> list[tuple[str, int, int]]:
    """Return the intervals, in seconds, of an action with events of these names, starts, finishes and results."""
    action = Action(state=state, end_time=end and at(end))
    events = [
        ActionEvent(
            event=name, start_time=at(start), finish_time=at(finish) if finish is not None else None, result=result
        )
        for name, start, finish, result in recorded
    ]
    return [
        (str(one.kind), int((one.start - BEGINNING).total_seconds()), int((one.end - BEGINNING).total_seconds()))
        for one in intervals_of(action, events, at(now))
    ]


def test_phases_of_one_attempt_form_one_running_interval() -> None:
    phases: list[Recorded] = [
        ("pre_condition", 0, 1, Result.SUCCESS),
        ("execute", 1, 60, Result.SUCCESS),
        ("post_condition", 60, 61, Result.SUCCESS),
    ]
    assert found("SUCCEEDED", *phases, end=61) == [("running", 0, 61)]


def test_unfinished_execution_lasts_until_now() -> None:
    assert found("ONGOING", ("execute", 5, None, None), now=30) == [("running", 5, 30)]


def test_time_between_attempts_is_a_deferred_interval() -> None:
    attempts: list[Recorded] = [("execute", 0, 10, Result.RETRY), ("execute", 40, 50, Result.SUCCESS)]
    assert found("SUCCEEDED", *attempts, end=50) == [("running", 0, 10), ("deferred", 10, 40), ("running", 40, 50)]


def test_deferred_interval_of_a_pending_action_lasts_until_now() -> None:
    assert found("PENDING", ("execute", 0, 10, Result.RETRY), now=25)[-1] == ("deferred", 10, 25)


def test_action_cancelled_while_deferred_has_no_deferred_interval() -> None:
    assert found("CANCELLED", ("execute", 0, 10, Result.RETRY)) == [("running", 0, 10)]


def test_time_of_derived_actions_is_a_waiting_interval() -> None:
    phases: list[Recorded] = [("execute", 0, 10, Result.WAITING), ("go_on", 90, 95, Result.SUCCESS)]
    assert found("SUCCEEDED", *phases, end=95) == [("running", 0, 10), ("waiting", 10, 90), ("running", 90, 95)]


@pytest.mark.parametrize("resumption", ["resume", "recover"])
def test_suspension_splits_the_running_interval(resumption: str) -> None:
    events: list[Recorded] = [
        ("execute", 0, 100, Result.SUCCESS),
        ("signal_suspend", 18, 18, Result.SUCCESS),
        ("suspend", 20, 20, Result.SUCCESS),
        (resumption, 50, 50, Result.SUCCESS),
    ]
    assert found("SUCCEEDED", *events, end=100) == [("running", 0, 20), ("suspended", 20, 50), ("running", 50, 100)]


def test_interval_of_a_suspended_action_lasts_until_now() -> None:
    events: list[Recorded] = [("execute", 0, None, None), ("suspend", 20, 20, Result.SUCCESS)]
    assert found("SUSPENDED", *events, now=300) == [("running", 0, 20), ("suspended", 20, 300)]


def test_total_duration_adds_the_intervals_of_a_kind() -> None:
    events = [
        ActionEvent(event=name, start_time=at(second), finish_time=at(second))
        for name, second in (("suspend", 0), ("resume", 5), ("suspend", 8), ("resume", 15))
    ]
    intervals = intervals_of(Action(state="SUCCEEDED"), events, at(99))
    assert total_duration(intervals, Kind.SUSPENDED) == timedelta(seconds=12)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (0.46, "0.5 s"),
        (9.97, "10 s"),
        (59.7, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (273_600, "3 d 4 h"),
    ],
)
def test_duration_is_shown_in_its_two_largest_units(seconds: float, words: str) -> None:
    assert describe_duration(timedelta(seconds=seconds)) == words


def test_duration_has_the_decimal_separator_of_the_reader() -> None:
    with override("de"):
        assert describe_duration(timedelta(seconds=2)) == "2,0 s"
