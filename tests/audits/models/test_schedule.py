"""Interval, start and end of CONTINUOUS audits: validation and due times."""

from datetime import datetime, timedelta

import pytest

from audits.models.schedule import Schedule, check_period, read_interval
from tests.audits.clock import NOON
from watcher_site.refusals import Invalid
from watcher_site.windows.wall_clock import read_time


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize("given", ["60", "+60", " 060 "])
def test_interval_in_seconds_is_normalized(given: str) -> None:
    assert read_interval(given, NOON) == "60"


@pytest.mark.parametrize(
    "cron",
    ["*/5 * * * *", "@hourly", "@midnight", "0 0 29 2 *", "* * * * * 30", "0 12 * * mon-fri", "0 0 1 1 * 0 2027"],
)
def test_cron_expression_is_stored_unchanged(cron: str) -> None:
    assert read_interval(cron, NOON) == cron


@pytest.mark.parametrize("nothing", [None, "", "  "])
def test_empty_interval_is_none(nothing: str | None) -> None:
    assert read_interval(nothing, NOON) is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("0", "interval: must be from 1 to 3155760000 seconds, not 0."),
        ("-60", "interval: must be from 1 to 3155760000 seconds, not -60."),
        ("9" * 36, f"interval: must be from 1 to 3155760000 seconds, not {'9' * 36}."),
        ("0 0 31 2 *", "interval: the time '0 0 31 2 *' never comes."),
        ("0 0 1 1 * 0 2020", "interval: the time '0 0 1 1 * 0 2020' never comes."),
        ("1 " * 36, "interval: must be at most 36 characters long."),
        ("* * * * \0", "interval: must not contain NUL characters."),
    ],
)
def test_interval_without_any_run_is_refused(given: str, text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        read_interval(given, NOON)
    assert str(refusal.value) == text


@pytest.mark.parametrize("given", ["* * *", "1.5", "hourly", "60s", "61 * * * *", "@reboot", "🐘 * * * *", "٦٠"])
def test_interval_that_is_neither_seconds_nor_cron_is_refused_with_its_text(given: str) -> None:
    with pytest.raises(Invalid, match="is neither a number of seconds nor a cron expression") as refusal:
        read_interval(given, NOON)
    assert f"interval: '{given}'" in str(refusal.value)


@pytest.mark.parametrize("given", [60, 1.5, ["60"], True])
def test_interval_that_is_no_text_is_refused(given: object) -> None:
    with pytest.raises(Invalid, match="interval: must be a text"):
        read_interval(given, NOON)


@pytest.mark.parametrize(
    ("given", "time"),
    [
        ("2026-11-21T12:00:00", NOON),
        ("2026-11-21T12:00:00Z", NOON),
        ("2026-11-21T14:00:00+02:00", NOON),
        ("2026-11-21", NOON - timedelta(hours=12)),
        (NOON, NOON),
        (None, None),
        ("", None),
    ],
)
def test_time_without_a_time_zone_is_utc(given: str | datetime | None, time: datetime | None) -> None:
    assert read_time("start_time", given) == time


@pytest.mark.parametrize("given", ["tomorrow", "2026-13-01", "0001-01-01T00:00:00+10:00", "\0", 7, ["2026-11-21"]])
def test_invalid_time_is_refused_with_the_name_of_its_field(given: object) -> None:
    with pytest.raises(Invalid, match=r"^end_time: must be a time in ISO 8601"):
        read_time("end_time", given)


def test_end_time_in_the_past_is_refused() -> None:
    with pytest.raises(Invalid, match="end_time: must not be in the past"):
        check_period(None, after(-1), NOON)


@pytest.mark.parametrize("end", [60, 120])
def test_end_time_not_after_start_time_is_refused(end: float) -> None:
    with pytest.raises(Invalid, match="end_time: must be after start_time"):
        check_period(after(120), after(end), NOON)


@pytest.mark.parametrize(
    ("interval", "start", "first"),
    [
        ("60", None, 0),
        ("60", -90, 0),
        ("60", 90, 90),
        ("*/10 * * * *", None, 0),
        ("5 * * * *", None, 300),
        ("*/10 * * * *", 601, 1200),
        ("*/10 * * * *", 600, 600),
    ],
)
def test_first_run_is_due_now_or_at_the_start_time(interval: str, start: float | None, first: float) -> None:
    schedule = Schedule(interval, None if start is None else after(start))
    assert schedule.first(NOON) == after(first)


@pytest.mark.parametrize(
    ("interval", "now", "following"),
    [
        ("60", 0, 60),
        ("60", 59.5, 60),
        ("60", 60, 120),
        ("60", 3601, 3660),
        ("60", -30, 0),
        ("*/10 * * * *", 0, 600),
        ("*/10 * * * *", 3601, 4200),
    ],
)
def test_next_run_is_a_multiple_of_the_interval_and_omits_missed_times(
    interval: str, now: float, following: float
) -> None:
    assert Schedule(interval).following(NOON, after(now)) == after(following)


@pytest.mark.parametrize("interval", ["60", "* * * * *"])
def test_no_run_is_due_at_end_time_or_later(interval: str) -> None:
    assert Schedule(interval, end_time=after(60)).following(NOON, NOON) is None


def test_no_run_is_due_after_the_last_representable_time() -> None:
    last = datetime.fromisoformat("9999-12-31T23:59:59+00:00")
    assert (Schedule("60").following(last, last), Schedule("* * * * *").following(last, last)) == (None, None)
