"""Maintenance windows in local time: nights, weekdays, and the hours that clock changes skip or repeat."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from watcher_site.windows.maintenance import EVERY_DAY, Window

BERLIN, NEW_YORK, LORD_HOWE = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")
SATURDAY = 5


def clock(text: str) -> time:
    return time.fromisoformat(text)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(opens: str, closes: str, zone: ZoneInfo = BERLIN, **more: object) -> Window:
    return Window(zone, clock(opens), clock(closes), **more)  # type: ignore[arg-type]


def hours(found: Window, moment: str) -> tuple[datetime, datetime]:
    """Return the next opening of a window from a moment on, and the following closing."""
    opening = found.opening(utc(moment))
    assert opening
    return opening, found.closing(opening)


def test_window_includes_its_opening_and_excludes_its_closing() -> None:
    found = window("01:00", "03:00")
    moments = ("2026-06-01T22:59:59", "2026-06-01T23:00", "2026-06-02T00:59:59", "2026-06-02T01:00")
    assert [found.is_open(utc(moment)) for moment in moments] == [False, True, True, False]


def test_opening_of_an_open_window_is_now() -> None:
    assert hours(window("01:00", "03:00"), "2026-06-02T00:15") == (utc("2026-06-02T00:15"), utc("2026-06-02T01:00"))


def test_window_across_midnight_belongs_to_its_opening_day() -> None:
    found = window("22:00", "04:00", weekdays=frozenset({SATURDAY}))
    assert hours(found, "2026-06-01T00:00") == (utc("2026-06-06T20:00"), utc("2026-06-07T02:00"))
    assert not found.is_open(utc("2026-06-06T00:00"))  # The night to Saturday.


def test_window_can_close_at_midnight() -> None:
    assert hours(window("22:00", "00:00"), "2026-06-01T12:00") == (utc("2026-06-01T20:00"), utc("2026-06-01T22:00"))


def test_window_is_limited_by_its_first_and_last_day() -> None:
    found = window("22:00", "04:00", first_day=date(2027, 3, 1), last_day=date(2027, 3, 2))
    assert hours(found, "2026-06-01T12:00") == (utc("2027-03-01T21:00"), utc("2027-03-02T03:00"))
    assert found.opening(utc("2027-03-02T22:00")) == utc("2027-03-02T22:00")
    assert found.opening(utc("2027-03-03T03:00")) is None


def test_daylight_saving_time_shifts_a_window_in_utc_and_not_in_local_time() -> None:
    found = window("01:00", "05:00")
    assert hours(found, "2026-03-27T12:00") == (utc("2026-03-28T00:00"), utc("2026-03-28T04:00"))
    assert hours(found, "2026-03-29T12:00") == (utc("2026-03-29T23:00"), utc("2026-03-30T03:00"))


def test_window_across_the_spring_clock_change_is_one_hour_shorter() -> None:
    assert hours(window("01:00", "05:00"), "2026-03-28T12:00") == (utc("2026-03-29T00:00"), utc("2026-03-29T03:00"))


def test_window_that_opens_in_the_skipped_hour_opens_after_it() -> None:
    assert hours(window("02:30", "05:00"), "2026-03-28T12:00") == (utc("2026-03-29T01:00"), utc("2026-03-29T03:00"))


def test_window_that_closes_in_the_skipped_hour_closes_before_it() -> None:
    assert hours(window("01:00", "02:30"), "2026-03-28T12:00") == (utc("2026-03-29T00:00"), utc("2026-03-29T01:00"))


def test_window_within_the_skipped_hour_opens_a_week_later() -> None:
    sundays = window("02:10", "02:50", weekdays=frozenset({6}))
    assert hours(sundays, "2026-03-28T12:00") == (utc("2026-04-05T00:10"), utc("2026-04-05T00:50"))


def test_window_across_the_autumn_clock_change_is_one_hour_longer() -> None:
    assert hours(window("01:00", "05:00"), "2026-10-24T12:00") == (utc("2026-10-24T23:00"), utc("2026-10-25T04:00"))


def test_window_within_the_repeated_hour_opens_twice() -> None:
    found = window("02:10", "02:50")
    assert hours(found, "2026-10-24T12:00") == (utc("2026-10-25T00:10"), utc("2026-10-25T00:50"))
    assert hours(found, "2026-10-25T00:50") == (utc("2026-10-25T01:10"), utc("2026-10-25T01:50"))


def test_window_that_closes_in_the_repeated_hour_closes_twice() -> None:
    found = window("01:30", "02:30")
    assert hours(found, "2026-10-24T12:00") == (utc("2026-10-24T23:30"), utc("2026-10-25T00:30"))
    assert hours(found, "2026-10-25T00:30") == (utc("2026-10-25T01:00"), utc("2026-10-25T01:30"))


def test_clock_change_of_half_an_hour_is_supported() -> None:
    found = window("01:00", "03:00", LORD_HOWE)
    opening, closing = hours(found, "2026-04-04T12:00")
    assert closing - opening == timedelta(hours=2, minutes=30)


BEFORE_CLOCK_CHANGES = [
    utc("2026-03-27T21:07"),
    utc("2026-10-23T13:10"),
    utc("2026-04-03T00:00"),
    utc("2026-11-01T03:00"),
]
CLOCKS = st.builds(time, st.integers(0, 23), st.sampled_from([0, 10, 30, 50]))


@given(
    opens=CLOCKS,
    closes=CLOCKS,
    weekdays=st.frozensets(st.integers(0, 6), min_size=1) | st.just(EVERY_DAY),
    zone=st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, ZoneInfo("UTC"), ZoneInfo("Africa/Cairo")]),
    moment=st.sampled_from(
        [utc("2026-03-27T21:07"), utc("2026-10-23T13:10"), utc("2026-04-03T00:00"), utc("2026-11-01T03:00")]
    )
    | st.datetimes(datetime(2026, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_openings_and_closings_agree_with_is_open_at_each_minute(
    opens: time, closes: time, weekdays: frozenset[int], zone: ZoneInfo, moment: datetime
) -> None:
    if opens == closes:
        return
    found = Window(zone, opens, closes, weekdays)
    opening = found.opening(moment)
    assert opening
    closing = found.closing(opening)
    first = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    length = min(3 * 24 * 60, int((closing - first) / timedelta(minutes=1)) + 1)
    for minute in (first + number * timedelta(minutes=1) for number in range(length)):
        assert found.is_open(minute) == (opening <= minute < closing)
