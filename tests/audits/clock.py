"""A clock that a test sets."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

NOON = datetime.fromisoformat("2026-11-21T12:00:00+00:00")


class Clock:
    """A replacement of ``timezone.now``, which returns ``now`` until the test advances it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = NOON
        monkeypatch.setattr(timezone, "now", lambda: self.now)

    def advance(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now
