"""Schedules, by which a plan and its actions may begin: a time, a window, and the zone of both."""

from dataclasses import dataclass
from datetime import datetime

from watcher_site.windows.maintenance import Window

Hours = tuple[datetime | None, datetime | None]


@dataclass(frozen=True)
class Schedule:
    """The times of a plan: none of its actions begins before ``start_at``, nor while the ``window`` is closed."""

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
