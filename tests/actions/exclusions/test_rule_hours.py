"""Hours in which a rule is in force, in the time zone of its window."""

from datetime import UTC, datetime

import pytest

from actions.exclusions.rules import Rule
from actions.models.exclusions import Exclusion
from watcher_site.windows.maintenance import WEEKDAYS


def rule(opens: str, closes: str, weekdays: tuple[str, ...] = WEEKDAYS, **columns: object) -> Rule:
    days = {"weekdays": list(weekdays), "first_day": None, "last_day": None}
    window = {"opens": opens, "closes": closes, **days}
    return Rule.of(Exclusion(**{"name": "x", "window": window, "zone": "Europe/Berlin", **columns}))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "is_in_force"),
    [
        ("2026-03-27T06:59", False),  # Friday, winter: 7:59 in Berlin.
        ("2026-03-27T07:00", True),
        ("2026-03-27T16:59", True),
        ("2026-03-27T17:00", False),
        ("2026-03-28T09:00", False),  # Saturday.
        ("2026-03-30T05:59", False),  # Monday, summer: an hour earlier by UTC.
        ("2026-03-30T06:00", True),
        ("2026-03-30T16:00", False),
    ],
)
def test_office_hours_follow_the_zone_in_summer_and_winter(moment: str, is_in_force: bool) -> None:
    assert rule("08:00", "18:00", WEEKDAYS[:5]).is_in_force(at(moment)) is is_in_force


@pytest.mark.parametrize(
    ("moment", "is_in_force"),
    [
        ("2026-10-24T19:59", False),  # Saturday, 21:59 in Berlin.
        ("2026-10-24T20:00", True),
        ("2026-10-25T00:30", True),  # 2:30 in Berlin, for the first time.
        ("2026-10-25T01:30", True),  # 2:30 in Berlin, for the second time.
        ("2026-10-25T02:59", True),  # 3:59.
        ("2026-10-25T03:00", False),
        ("2026-10-25T22:00", False),  # Sunday night: it begins on Saturdays.
    ],
)
def test_night_window_belongs_to_the_weekday_of_its_start(moment: str, is_in_force: bool) -> None:
    assert rule("22:00", "04:00", ("saturday",)).is_in_force(at(moment)) is is_in_force


def test_window_in_the_skipped_hour_of_spring_is_never_in_force() -> None:
    night = rule("02:00", "03:00")
    moments = [at(f"2026-03-29T{hour:02}:{minute:02}") for hour in range(4) for minute in range(60)]
    assert not any(map(night.is_in_force, moments))


def test_rule_is_in_force_until_it_expires() -> None:
    expiring = rule("00:00", "23:59", expires_at=at("2026-05-01T12:00"))
    assert expiring.is_in_force(at("2026-05-01T11:59"))
    assert not expiring.is_in_force(at("2026-05-01T12:00"))
    assert expiring.next_in_force(at("2026-05-01T12:00")) is None


def test_rule_with_an_unknown_zone_is_always_in_force() -> None:
    assert rule("08:00", "09:00", zone="Mars/Olympus").is_in_force(at("2026-05-01T20:00"))
