"""Maintenance windows: hours of days, in the local time of a time zone.

The local time decides: an hour that is skipped in spring is in no window, and one that is repeated in autumn is either
in a window both times or not at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.utils import dates

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EVERY_DAY = frozenset(range(len(WEEKDAYS)))
# The names of the days in the language of the reader.
WEEKDAY_NAMES = {name: dates.WEEKDAYS[day] for day, name in enumerate(WEEKDAYS)}
DAY = timedelta(days=1)
# A window of one day a week that falls into a skipped hour opens again a week later.
HORIZON = 16 * DAY
PRECISION = timedelta(minutes=1)


@dataclass(frozen=True)
class Window:
    """A window that is open from ``opens`` until just before ``closes``, which is on the next day if it is not later.

    ``weekdays`` (0 is Monday), ``first_day`` and ``last_day`` restrict the days of its openings.
    """

    zone: ZoneInfo
    opens: time
    closes: time
    weekdays: frozenset[int] = EVERY_DAY
    first_day: date | None = None
    last_day: date | None = None

    def is_open(self, moment: datetime) -> bool:
        wall = moment.astimezone(self.zone)
        clock, today = wall.time(), wall.date()
        if self.opens < self.closes:
            return self.opens <= clock < self.closes and self.opens_on(today)
        return (clock >= self.opens and self.opens_on(today)) or (clock < self.closes and self.opens_on(today - DAY))

    def opens_on(self, day: date) -> bool:
        is_early = self.first_day is not None and day < self.first_day
        is_late = self.last_day is not None and day > self.last_day
        return day.weekday() in self.weekdays and not (is_early or is_late)

    def opening(self, moment: datetime) -> datetime | None:
        """Return the first moment, from this one on, at which the window is open, or None if it is over."""
        if self.is_open(moment):
            return moment
        return next((change for change in self.changes(moment, self.opens) if self.is_open(change)), None)

    def closing(self, moment: datetime) -> datetime:
        """Return the end of the open period that contains this moment."""
        return next(change for change in self.changes(moment, self.closes) if not self.is_open(change))

    def changes(self, moment: datetime, clock: time) -> Iterator[datetime]:
        """Yield the later moments, in order, at which the local time is this one or the UTC offset changes."""
        first = moment.astimezone(self.zone).date() - DAY
        if self.first_day:
            first = max(first, self.first_day - DAY)
        begin = max(moment, datetime.combine(first, time(), UTC))
        found = {change for change in clock_changes(self.zone, begin, begin + HORIZON) if change > moment}
        for day in (first + number * DAY for number in range(HORIZON.days)):
            found |= {at for fold in (0, 1) if (at := instant(day, clock, self.zone, fold)) > moment}
        return iter(sorted(found))


def instant(day: date, clock: time, zone: ZoneInfo, fold: int = 0) -> datetime:
    return datetime.combine(day, clock.replace(fold=fold), zone).astimezone(UTC)


def clock_changes(zone: ZoneInfo, begin: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the moments at which the UTC offset of a zone changes."""
    before = begin
    while before < end:
        after = before + DAY
        if utc_offset(before, zone) != utc_offset(after, zone):
            yield clock_change(zone, before, after)
        before = after


def clock_change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Return the moment between these two at which the UTC offset changes, to the full minute."""
    before = before.replace(second=0, microsecond=0)
    while after - before > PRECISION:
        middle = before + (after - before) // (2 * PRECISION) * PRECISION
        if utc_offset(middle, zone) == utc_offset(before, zone):
            before = middle
        else:
            after = middle
    return after.replace(second=0, microsecond=0)


def utc_offset(moment: datetime, zone: ZoneInfo) -> timedelta | None:
    return moment.astimezone(zone).utcoffset()
