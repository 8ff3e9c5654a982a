"""A process that is killed between two statements: from then on nothing of it reaches the database any more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.utils import timezone
from tenacity import stop_after_attempt

from actions.phases import PERSISTENTLY
from plans.applier import Applier
from plans.models import ActionPlan
from tests.plans.inline import InlineExecutor, run_waiting
from watcher_site.models import Service


class Life:
    """So many statements and commits; after these, what would be sent is not."""

    def __init__(self, left: int) -> None:
        self.left = left

    @property
    def is_over(self) -> bool:
        return self.left < 0

    def spend(self) -> None:
        self.left -= 1
        if self.is_over:
            raise OperationalError("killed")


@contextmanager
def living(monkeypatch: pytest.MonkeyPatch, life: Life) -> Iterator[None]:
    wrapper = type(connections["default"])
    commit = wrapper._commit

    def spend(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        life.spend()
        return execute(sql, params, many, context)

    def spend_on_commit(self: Any) -> Any:
        life.spend()
        return commit(self)

    with monkeypatch.context() as patched, connection.execute_wrapper(spend):
        patched.setattr(PERSISTENTLY, "stop", stop_after_attempt(1))
        patched.setattr(wrapper, "_commit", spend_on_commit)
        yield


def run_until_killed(monkeypatch: pytest.MonkeyPatch, statements: int) -> bool:
    """Run what waits with an applier that is killed after so many statements, and say whether it was."""
    applier, life = Applier(InlineExecutor()), Life(statements)
    with living(monkeypatch, life):
        while not life.is_over:
            applier.advance()
            if applier.is_idle and not life.is_over:
                break
            applier.collect(0)
    Service.objects.filter(pk=applier.service.pk).update(last_seen_up=timezone.now() - timedelta(hours=1))
    return life.is_over


def kill_at_every_statement(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], ActionPlan], step: int = 1
) -> Iterator[ActionPlan]:
    """Give each plan as its successor left it after an applier was killed: ``step`` statements later each time."""
    statements = 0
    while True:
        plan = make()
        killed = run_until_killed(monkeypatch, statements)
        run_waiting()
        yield ActionPlan.objects.get(pk=plan.pk)
        if not killed:
            return
        statements += step
