"""Parsing and formatting of times, windows and time zones."""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from watcher_site.refusals import Invalid
from watcher_site.windows import messages
from watcher_site.windows.maintenance import EVERY_DAY, WEEKDAY_NAMES, WEEKDAYS, Window

T = TypeVar("T")
# Python's datetime ends with the year 9999, in any time zone.
LAST_YEAR = 9000
WINDOW = ("opens", "closes", "weekdays", "first_day", "last_day")


@cache
def zones() -> tuple[str, ...]:
    return tuple(sorted(available_timezones()))


def require_zone(zone: str) -> str:
    """Return the name of a time zone, or UTC if it is not known on this machine."""
    return zone if zone in zones() else "UTC"


def read_zone(name: Any) -> ZoneInfo:
    """Return the time zone of a name such as Europe/Berlin.

    Raises:
        Invalid: the name is unknown.
    """
    if name not in zones():
        raise Invalid(messages.NO_ZONE.fill(name=name))
    return ZoneInfo(name)


def read_moment(name: str, text: Any, zone: ZoneInfo, now: datetime) -> datetime | None:
    """Parse a time in ISO 8601, in local time of the zone if it has no offset.

    Of a repeated local time, the first is returned.

    Raises:
        Invalid: the text is not a time, the local time is skipped in the zone, or it is in the past; the message
            begins with the ``name`` of the field.
    """
    if text is None:
        return None
    parsed = parse_field(name, text, datetime.fromisoformat, messages.A_MOMENT.text)
    require_year(name, parsed)
    moment = (parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)).astimezone(UTC)
    if parsed.tzinfo is None and moment.astimezone(zone).replace(tzinfo=None) != parsed:
        raise Invalid(
            messages.SKIPPED_TIME.fill(field=name, time=f"{parsed:%H:%M}", day=f"{parsed:%Y-%m-%d}", zone=zone)
        )
    if moment <= now:
        raise Invalid(messages.PAST.fill(field=name, time=text))
    return moment


def read_time(field: str, value: Any) -> datetime | None:
    """Parse a time in ISO 8601, in UTC if it has no offset, or return None for an empty text.

    Raises:
        Invalid: it is not a time.
    """
    if not value:
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        raise Invalid(messages.TIME_RULE.fill(field=field)) from None


def read_window(document: Any, zone: ZoneInfo) -> Window | None:
    """Return the window of a JSON object with ``opens``, ``closes`` and the days.

    Raises:
        Invalid: the object is not a window, or the window ends before it begins.
    """
    if document is None:
        return None
    if not isinstance(document, Mapping):
        raise Invalid("window: must be an object with opens and closes, or null.")
    if unknown := set(document) - set(WINDOW):
        raise Invalid(f"window: has no attribute {min(map(str, unknown))}. It may have {', '.join(WINDOW)}.")
    opens, closes = (read_clock(f"window.{name}", document.get(name)) for name in ("opens", "closes"))
    if opens == closes:
        raise Invalid(messages.SAME_TIMES.text)
    first, last = (read_day(f"window.{name}", document.get(name)) for name in ("first_day", "last_day"))
    if first and last and last < first:
        raise Invalid(messages.DAYS_REVERSED.fill(last=last, first=first))
    return Window(zone, opens, closes, read_weekdays(document.get("weekdays")), first, last)


def read_clock(name: str, text: Any) -> time:
    if text is None:
        raise Invalid(messages.MISSING_TIME.fill(field=name))
    parsed = parse_field(name, text, lambda value: datetime.strptime(value, "%H:%M"), messages.A_TIME.text)  # noqa: DTZ007
    return parsed.time()


def read_day(name: str, text: Any) -> date | None:
    if text is None:
        return None
    return require_year(name, parse_field(name, text, date.fromisoformat, messages.A_DAY.text))


def read_weekdays(names: Any) -> frozenset[int]:
    if names is None:
        return EVERY_DAY
    if not isinstance(names, list) or not names or any(name not in WEEKDAYS for name in names):
        raise Invalid(messages.WEEKDAYS_RULE.fill(names=", ".join(WEEKDAYS)))
    return frozenset(map(WEEKDAYS.index, names))


def read_names(text: str) -> list[str]:
    """Return the names of weekdays in an option of a command: separated by commas, in any case."""
    return [name.strip().lower() for name in text.split(",")]


def parse_field(name: str, text: Any, reader: Callable[[str], T], form: str) -> T:
    try:
        return reader(text)
    except (ValueError, TypeError):
        raise Invalid(messages.FORM_RULE.fill(field=name, form=form, text=f"{text!r}")) from None


def require_year(name: str, day: Any) -> Any:
    if not 1970 <= day.year < LAST_YEAR:
        raise Invalid(messages.YEAR_RULE.fill(field=name, year=LAST_YEAR - 1))
    return day


def serialize_window(window: Window | None) -> dict[str, Any] | None:
    """Return the JSON object of a window, which `read_window` parses."""
    if window is None:
        return None
    return {
        "opens": f"{window.opens:%H:%M}",
        "closes": f"{window.closes:%H:%M}",
        "weekdays": [WEEKDAYS[day] for day in sorted(window.weekdays)],
        "first_day": window.first_day and window.first_day.isoformat(),
        "last_day": window.last_day and window.last_day.isoformat(),
    }


def describe_window(document: Mapping[str, Any] | None, zone: str) -> str:
    """Return a text with the hours, days and zone of a stored window; empty without one."""
    return f"{describe_hours(document)} ({zone})" if document else ""


def describe_hours(stored: Any) -> str:
    """Return a text with the hours and days of a stored window; an invalid window is quoted."""
    try:
        document = serialize_window(read_window(stored, ZoneInfo("UTC"))) or {}
    except Invalid:
        return _("not understood: %(text)s") % {"text": stored}
    days = document["weekdays"]
    parts = [f"{document['opens']}–{document['closes']}"]  # noqa: RUF001 (a dash between times)
    parts += [str(WEEKDAY_NAMES[day]) for day in days] if len(days) < len(WEEKDAYS) else [gettext("every day")]
    for name, text in (("first_day", _("from %(day)s")), ("last_day", _("until %(day)s"))):
        if document[name]:
            parts.append(text % {"day": document[name]})
    return ", ".join(parts)
