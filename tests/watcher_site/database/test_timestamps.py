"""Conversion of the times that PostgreSQL returns."""

from datetime import UTC, datetime

import pytest
from django.db import DataError, connection

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]


def read(text: str) -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        found: datetime = cursor.fetchone()[0]
    return found


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-21 12:15:02+00", datetime(2026, 11, 21, 12, 15, 2, tzinfo=UTC)),
        ("2026-11-21 12:15:02.12+00", datetime(2026, 11, 21, 12, 15, 2, 120000, tzinfo=UTC)),
        ("2026-11-21 12:15:02.000001+05:30", datetime(2026, 11, 21, 6, 45, 2, 1, tzinfo=UTC)),
        ("0001-01-01 00:00:00+00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31 23:59:59.999999+00", datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ],
)
def test_time_is_read_in_utc_with_microseconds(text: str, time: datetime) -> None:
    found = read(text)
    assert found == time
    assert found.tzinfo is UTC


def test_other_date_style_is_refused() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET DateStyle = 'German'")
    with pytest.raises(Exception, match="DateStyle"):
        read("2026-11-21 12:15:02+00")


@pytest.mark.parametrize("text", ["infinity", "-infinity", "0100-01-01 00:00:00+00 BC", "12000-01-01 00:00:00+00"])
def test_time_outside_of_pythons_range_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="timestamp too"):
        read(text)
