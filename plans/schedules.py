"""When a plan may begin, and when its actions may, as people say it: a moment, hours of days, and the zone of both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from plans.windows import EVERY_DAY, WEEKDAYS, Window
from watcher_site.refusals import Invalid

Document = Mapping[str, Any]
T = TypeVar("T")
# Python has no moment behind the year 9999, wherever the clock hangs.
LAST_YEAR = 9000
WINDOW = ("opens", "closes", "weekdays", "first_day", "last_day")
Hours = tuple[datetime | None, datetime | None]


@dataclass(frozen=True)
class Schedule:
    """Nothing of a plan begins before ``start_at``, nor while the ``window`` is closed."""

    start_at: datetime | None = None
    window: Window | None = None

    def hours(self, now: datetime) -> Hours | None:
        """Return from when and until when it may begin next, each None where nothing stands in the way.

        None alone means that the window is over.
        """
        if self.window is None:
            return self.start_at, None
        opening = self.window.opening(max(now, self.start_at or now))
        return None if opening is None else (opening, self.window.closing(opening))


def is_within(hours: Hours, now: datetime) -> bool:
    opens_at, closes_at = hours
    return (opens_at is None or opens_at <= now) and (closes_at is None or now < closes_at)


@cache
def zones() -> tuple[str, ...]:
    return tuple(sorted(available_timezones()))


def read_zone(name: Any) -> ZoneInfo:
    """Return the time zone of a name such as Europe/Berlin.

    Raises:
        Invalid: there is none of this name.
    """
    if name not in zones():
        raise Invalid(f"zone: there is no time zone '{name}'. It must be a name such as Europe/Berlin, or UTC.")
    return ZoneInfo(name)


def read_start(text: Any, zone: ZoneInfo, now: datetime) -> datetime | None:
    """Return the moment that a text in ISO 8601 names, by the zone's clock where it says nothing of its own.

    Of an hour that comes twice, the first is meant.

    Raises:
        Invalid: it names none, one that the zone's clock leaves out, or one that is over.
    """
    if text is None:
        return None
    said = read("start_at", text, datetime.fromisoformat, "a time in ISO 8601, such as 2030-01-31T22:00:00")
    require_year("start_at", said)
    moment = (said if said.tzinfo else said.replace(tzinfo=zone)).astimezone(UTC)
    if said.tzinfo is None and moment.astimezone(zone).replace(tzinfo=None) != said:
        raise Invalid(f"start_at: there is no {said:%H:%M} on {said:%Y-%m-%d} in {zone}: the clocks go forward then.")
    if moment <= now:
        raise Invalid(f"start_at: must not be in the past, and {text} is.")
    return moment


def read_window(document: Any, zone: ZoneInfo) -> Window | None:
    """Return the maintenance window that a JSON object describes: ``opens`` and ``closes``, and on which days.

    Raises:
        Invalid: it describes none, or one that ends before it begins.
    """
    if document is None:
        return None
    if not isinstance(document, Mapping):
        raise Invalid("window: must be an object with opens and closes, or null.")
    if unknown := set(document) - set(WINDOW):
        raise Invalid(f"window: has no attribute {min(map(str, unknown))}. It may have {', '.join(WINDOW)}.")
    opens, closes = (read_clock(f"window.{name}", document.get(name)) for name in ("opens", "closes"))
    if opens == closes:
        raise Invalid("window.closes: must differ from opens. A window that closes earlier is open through midnight.")
    first, last = (read_day(f"window.{name}", document.get(name)) for name in ("first_day", "last_day"))
    if first and last and last < first:
        raise Invalid(f"window.last_day: must not be before first_day: {last} is before {first}.")
    return Window(zone, opens, closes, read_weekdays(document.get("weekdays")), first, last)


def read_clock(name: str, text: Any) -> time:
    if text is None:
        raise Invalid(f"{name}: missing. A window needs both opens and closes, each a time such as 22:00.")
    said = read(name, text, lambda value: datetime.strptime(value, "%H:%M"), "a time such as 22:00")  # noqa: DTZ007
    return said.time()


def read_day(name: str, text: Any) -> date | None:
    if text is None:
        return None
    return require_year(name, read(name, text, date.fromisoformat, "a day such as 2030-01-31"))


def read_weekdays(names: Any) -> frozenset[int]:
    if names is None:
        return EVERY_DAY
    if not isinstance(names, list) or not names or any(name not in WEEKDAYS for name in names):
        raise Invalid(f"window.weekdays: must be a list of one or more of {', '.join(WEEKDAYS)}.")
    return frozenset(map(WEEKDAYS.index, names))


def read(name: str, text: Any, reader: Callable[[str], T], form: str) -> T:
    try:
        return reader(text)
    except (ValueError, TypeError):
        raise Invalid(f"{name}: must be {form}, not {text!r}.") from None


def require_year(name: str, day: Any) -> Any:
    if not 1970 <= day.year < LAST_YEAR:
        raise Invalid(f"{name}: must be in a year from 1970 to {LAST_YEAR - 1}.")
    return day


def written(window: Window | None) -> dict[str, Any] | None:
    """Return a window as it is stored and shown: what `read_window` reads."""
    if window is None:
        return None
    return {
        "opens": f"{window.opens:%H:%M}",
        "closes": f"{window.closes:%H:%M}",
        "weekdays": [WEEKDAYS[day] for day in sorted(window.weekdays)],
        "first_day": window.first_day and window.first_day.isoformat(),
        "last_day": window.last_day and window.last_day.isoformat(),
    }
