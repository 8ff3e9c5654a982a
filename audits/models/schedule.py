"""The schedule of a CONTINUOUS audit: an interval or a cron expression, between its start and its end."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from croniter import CroniterError, croniter

from audits import messages
from watcher_site.database.text import require_storable
from watcher_site.refusals import Invalid

INTERVAL_LENGTH = 36
# A hundred years.
MOST_SECONDS = 3_155_760_000
TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class Schedule:
    """The times of the runs. `interval` was read by `read_interval`. Methods return None if there is no run."""

    interval: str
    start_time: datetime | None = None
    end_time: datetime | None = None

    @property
    def period(self) -> timedelta | None:
        return timedelta(seconds=int(self.interval)) if is_integer(self.interval) else None

    def first(self, now: datetime) -> datetime | None:
        """Return the first run of a new audit: with seconds, now or at its start; with cron, at the next match."""
        begin = max(now, self.start_time or now)
        return self.before_end(begin if self.period else self.match(begin - TICK))

    def again(self, now: datetime) -> datetime | None:
        """Return the run one interval from now."""
        return self.following(now, now)

    def following(self, planned: datetime, now: datetime) -> datetime | None:
        """Return the planned run if it is in the future, otherwise the first later run that continues its series.

        Missed runs are omitted.
        """
        if planned > now:
            return self.before_end(planned)
        if self.period is None:
            return self.before_end(self.match(now))
        try:
            return self.before_end(planned + ((now - planned) // self.period + 1) * self.period)
        except OverflowError:
            return None

    def match(self, moment: datetime) -> datetime | None:
        """Return the first match of the cron expression after a moment.

        Raises:
            Invalid: croniter does not accept the expression.
        """
        try:
            next_time: datetime = croniter(self.interval, moment.astimezone(UTC)).get_next(datetime)
        except (CroniterError, OverflowError) as problem:
            if croniter.is_valid(self.interval):
                return None
            raise Invalid(messages.INTERVAL_RULE.fill(interval=self.interval, problem=problem)) from problem
        return next_time

    def before_end(self, moment: datetime | None) -> datetime | None:
        return None if moment is None or (self.end_time and moment >= self.end_time) else moment


def is_integer(text: str) -> bool:
    return bool(re.fullmatch(r"[+-]?[0-9]+", text))


def read_interval(text: Any, now: datetime) -> str | None:
    """Return an interval in the stored format: whole seconds, or a cron expression of 5 to 7 fields, or @hourly etc.

    Raises:
        Invalid: the interval has another format, or no run would ever follow from it.
    """
    if text is None:
        return None
    if not isinstance(text, str):
        raise Invalid("interval: must be a text.")
    require_storable("interval", text)
    interval = text.strip()
    if len(interval) > INTERVAL_LENGTH:
        raise Invalid(messages.INTERVAL_LENGTH_RULE.fill(number=INTERVAL_LENGTH))
    if is_integer(interval):
        return read_seconds(interval)
    if interval and Schedule(interval).match(now) is None:
        raise Invalid(messages.INTERVAL_NEVER.fill(interval=interval))
    return interval or None


def read_seconds(text: str) -> str:
    if not 1 <= int(text) <= MOST_SECONDS:
        raise Invalid(messages.INTERVAL_SECONDS.fill(most=MOST_SECONDS, seconds=text))
    return str(int(text))


def check_period(start_time: datetime | None, end_time: datetime | None, now: datetime | None) -> None:
    """Raise `Invalid` unless the end is after the start and, if ``now`` is given, after now."""
    if now and end_time and end_time <= now:
        raise Invalid(messages.END_IN_PAST.text)
    if start_time and end_time and end_time <= start_time:
        raise Invalid(messages.END_BEFORE_START.text)
