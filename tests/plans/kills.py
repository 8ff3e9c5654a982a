"""Simulated kills of a process between two changes of the database: later statements are not executed."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone
from tenacity import stop_after_attempt

from actions.engine.storage import PERSISTENTLY
from plans.applier.applier import Applier
from plans.models import ActionPlan
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.models import Service

READS = re.compile(r"\s*(SELECT|BEGIN|SAVEPOINT|RELEASE|ROLLBACK|SET|PRAGMA)\b", re.IGNORECASE)


class Life:
    """A number of changes of the database, after which all statements are refused.

    A process that dies at another statement leaves the same database as one that dies before the change that follows:
    reads leave no trace, and an unfinished transaction is rolled back.
    """

    def __init__(self, changes: int) -> None:
        self.left = changes
        self.has_written = False

    @property
    def is_over(self) -> bool:
        return self.left < 0

    def execute(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not self.is_over and not READS.match(sql):
            self.has_written = True
            if not context["connection"].in_atomic_block:
                self.change()
        self.check()
        return execute(sql, params, many, context)

    def commit(self, commit: Callable[[], Any]) -> Any:
        self.change()
        self.check()
        return commit()

    def change(self) -> None:
        self.left -= self.has_written
        self.has_written = False

    def check(self) -> None:
        if self.is_over:
            raise OperationalError("killed")


class LifeInStatements(Life):
    """A number of statements and commits, for actions that change a cloud outside of the database between them."""

    def execute(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.left -= 1
        self.check()
        return execute(sql, params, many, context)

    def commit(self, commit: Callable[[], Any]) -> Any:
        self.left -= 1
        self.check()
        return commit()


@contextmanager
def living(monkeypatch: pytest.MonkeyPatch, life: Life) -> Iterator[None]:
    wrapper = type(connections["default"])
    commit = wrapper._commit
    with monkeypatch.context() as patched, connection.execute_wrapper(life.execute):
        patched.setattr(PERSISTENTLY, "stop", stop_after_attempt(1))
        patched.setattr(wrapper, "_commit", lambda self: life.commit(lambda: commit(self)))
        yield


def run_until_killed(monkeypatch: pytest.MonkeyPatch, life: Life) -> bool:
    """Run pending plans with an applier that is killed at the end of its life, and return whether it was killed."""
    applier = Applier(InlineExecutor())
    with living(monkeypatch, life):
        while not life.is_over:
            applier.advance()
            if applier.is_idle and not life.is_over:
                break
            applier.collect(0)
    Service.objects.filter(pk=applier.service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    return life.is_over


def kill_at_every_change(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], ActionPlan], step: int = 1
) -> Iterator[ActionPlan]:
    """Kill an applier, ``step`` changes later each time, and yield each plan as the next applier left it."""
    changes = 0
    while True:
        plan = make()
        killed = run_until_killed(monkeypatch, Life(changes))
        run_waiting()
        yield ActionPlan.objects.get(pk=plan.pk)
        if not killed:
            return
        changes += step
