"""Two verbs in the one order that matters: the second is let in while the first is in the middle of its work.

Threads that merely start together meet by chance. Here the first one calls `let_in` from inside of its transaction:
the second either comes to its end there, as nothing holds it back, or is seen to wait for the first one's locks.
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
# Where neither comes about, something hangs: the test fails, rather than wait for ever.
PATIENCE = 120


class Rival:
    """A verb with a thread and a connection of its own. `result` gives what it returns, or raises what it raised."""

    def __init__(self, verb: Callable[[], Any]) -> None:
        self.verb = verb
        self.begun = False
        self.pool = ThreadPoolExecutor(1)

    def let_in(self) -> None:
        """Start it, once, and return when it is done or waits for a lock of the calling thread's connection."""
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
        assert self.begun, "the rival was never let in: the hook is not on the way of the first verb"
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
        rival.let_in()
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, interrupted)


def interrupt_after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, rival: Rival) -> None:
    """Make a function or a method call the rival after it has written, and before it commits."""
    original = getattr(owner, name)

    def interrupted(*arguments: Any, **options: Any) -> Any:
        with transaction.atomic():
            answer = original(*arguments, **options)
            rival.let_in()
        return answer

    monkeypatch.setattr(owner, name, interrupted)
