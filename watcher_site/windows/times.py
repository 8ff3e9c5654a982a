"""Times that people give."""

from datetime import UTC, datetime
from typing import Any

from watcher_site.refusals import Invalid


def read_time(field: str, value: Any) -> datetime | None:
    """Return a time that a person gave in ISO 8601, in UTC where it names no zone; nothing for nothing.

    Raises:
        Invalid: it is no time.
    """
    if not value:
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        raise Invalid(f"{field}: must be a time in ISO 8601, such as 2030-01-31T08:00:00.") from None
