"""Two operations in a defined order: the second one, the rival, starts within the transaction of the first.

Threads that only start at the same time interleave by chance. Here a hook in the first operation calls `start`,
which returns when the rival has ended, or when it waits for a lock of the first operation.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

WAITS_FOR_US = (
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))"
)
# If the rival neither ends nor waits in this time, it hangs, and the test fails.
PATIENCE = 120


class Rival:
    """An operation in a separate thread with its own connection. `result` returns its result, or raises its error."""

    def __init__(self, verb: Callable[[], Any]) -> None:
        self.verb = verb
        self.begun = False
        self.pool = ThreadPoolExecutor(1)

    def start(self) -> None:
        """Start the operation once, and return when it has ended or waits for a lock of the calling thread."""
        if self.begun:
            return
        self.begun = True
        self.future = self.pool.submit(self.run)
        deadline = time.monotonic() + PATIENCE
        while not self.future.done() and not is_waited_for():
            assert time.monotonic() < deadline, "the rival neither ends nor waits for us"
            time.sleep(0.001)

    def run(self) -> Any:
        try:
            return self.verb()
        finally:
            connection.close()

    def result(self) -> Any:
        assert self.begun, "the rival was never started: the first operation does not call the hook"
        try:
            return self.future.result(PATIENCE)
        finally:
            self.pool.shutdown()


def is_waited_for() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS_FOR_US)
        return bool(cursor.fetchone()[0])


def interrupt_before(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, rival: Rival) -> None:
    """Make a function or a method call the rival before it does its own work."""
    original = getattr(owner, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        rival.start()
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)


def interrupt_after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, rival: Rival) -> None:
    """Make a function or a method call the rival after it has written, and before it commits."""
    original = getattr(owner, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        with transaction.atomic():
            answer = original(*arguments, **options)
            rival.start()
        return answer

    monkeypatch.setattr(owner, name, interrupted)
