"""The transactions of a purge: how long each holds its locks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from statistics import median
from typing import Any

from django.core.management import call_command
from django.db import connection
from django.db.transaction import Atomic

from tests.benchmarks.scale.costs import Installation
from tests.benchmarks.table import Line

# The plans, actions and entries that are removed, and the limit of a transaction in milliseconds.
REMOVED = 5000
LIMIT = 100


def measure(installation: Installation) -> list[Line]:
    """Return the lines of the median and of the longest transaction.

    The time is that on processors, of this process and of PostgreSQL: other work of the machine is not in it.
    """
    with installation.in_use(), timed(installation) as durations:
        call_command("purge", yes=True, max_number=REMOVED, stdout=StringIO())
    net, whole = zip(*durations, strict=True)
    return [
        Line(f"a purge of {REMOVED:,} rows: {len(net):,} transactions", median(net), "limit", LIMIT, 1),
        Line("  the longest, on processors", max(net), "limit", LIMIT, 1),
        Line("  the longest, with waits on this machine", max(whole), "limit", LIMIT, 1),
    ]


@contextmanager
def timed(installation: Installation) -> Iterator[list[tuple[float, float]]]:
    """Note the durations of the outermost transactions of a block in milliseconds: on processors, and in all."""
    durations: list[tuple[float, float]] = []
    begins: list[tuple[float, float]] = []
    enter, leave = Atomic.__enter__, Atomic.__exit__

    def moments() -> tuple[float, float]:
        return time.process_time() + installation.seconds_of_server(), time.perf_counter()

    def enter_timed(atomic: Any) -> None:
        if not connection.in_atomic_block:
            begins.append(moments())
        enter(atomic)

    def leave_timed(atomic: Any, *problem: Any) -> None:
        leave(atomic, *problem)
        if not connection.in_atomic_block:
            before, now = begins.pop(), moments()
            durations.append((1000 * (now[0] - before[0]), 1000 * (now[1] - before[1])))

    Atomic.__enter__, Atomic.__exit__ = enter_timed, leave_timed  # type: ignore[method-assign]
    try:
        yield durations
    finally:
        Atomic.__enter__, Atomic.__exit__ = enter, leave  # type: ignore[method-assign]
