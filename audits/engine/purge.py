"""The periodic purge, which one decision engine at a time carries out between audits."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from uuid import UUID

import structlog
from django.conf import settings

from audits.models import PeriodicPurge
from audits.purging import expired_kinds, is_affected
from watcher_site.history import record
from watcher_site.processes.worker import NOT_OF_ONE_RECORD
from watcher_site.request_context import CallingContext

log = structlog.get_logger(__name__)
# The interval, in seconds, at which each engine finds out whether a purge is due.
CLAIM_PERIOD = 60
# The seconds after which a purge is continued in the next step, so that due audits do not wait for its end.
SLICE = 1.0


class PurgeFailed(Exception):
    """A periodic purge ended without the removal of some kinds of rows."""


class PurgeTask:
    """The part of a decision engine that purges. `advance` begins a purge that is due, or continues the current one.

    Args:
        is_stopping: returns whether the engine is about to end.
    """

    holder: UUID | None = None
    kinds: list[tuple[str, Iterator[int]]]
    removed: Counter[str]
    failed: list[str]

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        self.is_stopping = is_stopping
        self.next_claim = 0.0

    @property
    def is_running(self) -> bool:
        return self.holder is not None

    def advance(self) -> None:
        holder = self.holder or self.claim()
        if holder is None:
            return
        if not PeriodicPurge.renew(holder):
            # An audit of this engine took longer than the lease, and another engine purges.
            self.holder = None
            return
        try:
            self.remove_batches(holder)
        except NOT_OF_ONE_RECORD:
            # The claim expires.
            self.holder = None
            raise
        except Exception:
            # The same error would probably occur again: the next purge is due after the interval.
            self.end(holder)
            raise

    def claim(self) -> UUID | None:
        if time.monotonic() < self.next_claim or not settings.PURGE_INTERVAL:
            return None
        self.next_claim = time.monotonic() + CLAIM_PERIOD
        self.holder = PeriodicPurge.claim(settings.PURGE_INTERVAL)
        self.kinds, self.removed, self.failed = expired_kinds(), Counter(), []
        return self.holder

    def remove_batches(self, holder: UUID) -> None:
        """Remove rows until the end of the slice. Raises: `PurgeFailed` at the end, if a kind could not be removed."""
        until = time.monotonic() + SLICE
        while self.kinds:
            self.remove_batch()
            if self.kinds and (self.is_stopping() or time.monotonic() >= until):
                return
        removed = {title: number for title, number in self.removed.items() if number}
        if removed:
            record("database.purge", caller=CallingContext(), details=removed)
        if self.failed:
            raise PurgeFailed(f"not purged: {', '.join(self.failed)}")
        log.info("purge ended", removed=removed)
        self.end(holder)

    def remove_batch(self) -> None:
        """Remove a batch of the current kind, or continue with the next kind after its end or an error."""
        title, numbers = self.kinds[0]
        try:
            number = next(numbers, None)
        except NOT_OF_ONE_RECORD:
            raise
        except Exception:
            log.exception("rows could not be purged", kind=title)
            self.failed.append(title)
            self.kinds = [kind for kind in self.kinds if not is_affected(kind[0], title)]
            return
        if number is None:
            del self.kinds[0]
        else:
            self.removed[title] += number

    def end(self, holder: UUID) -> None:
        self.holder = None
        PeriodicPurge.end(holder)

    def release(self) -> None:
        """Release an unfinished purge, which another engine begins again at once."""
        if self.holder is not None:
            PeriodicPurge.release(self.holder)
            self.holder = None
