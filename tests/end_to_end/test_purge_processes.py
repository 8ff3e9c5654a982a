"""Processes that purge, and a ``purge`` that is stopped or killed, or loses its connection, while it removes rows."""

import signal
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from actions.models import Action
from audits.models import PeriodicPurge
from plans.models import ActionPlan
from tests.builders import make_audit, make_plan
from tests.interleaving import WAITS_FOR_US
from tests.processes import Process, start_command, start_fresh_command
from tests.waiting import PATIENCE, wait_for
from watcher_site.models import HistoryEntry

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]

DISCONNECT = (
    "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks"
    " WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
)


def ended_plan(number_of_actions: int) -> ActionPlan:
    graph = {str(number): [] for number in range(number_of_actions)}
    moment = timezone.now() - timedelta(days=31)
    return make_plan(graph, audit=make_audit(f"of {number_of_actions}"), state="SUCCEEDED", end_time=moment)


def is_blocking() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITS_FOR_US)
        return bool(cursor.fetchone()[0])


def terminate(purge: Process) -> None:
    purge.send_signal(signal.SIGTERM)


def kill(purge: Process) -> None:
    purge.send_signal(signal.SIGKILL)


def disconnect(_: Process) -> None:
    with connection.cursor() as cursor:
        cursor.execute(DISCONNECT)


@pytest.mark.parametrize("interrupt", [terminate, kill, disconnect])
def test_interrupted_purge_keeps_plans_whole_and_is_completed_by_the_next_purge(
    interrupt: Callable[[Process], None],
) -> None:
    first, second = ended_plan(99), ended_plan(98)
    with transaction.atomic():
        ActionPlan.objects.select_for_update().get(pk=second.pk)
        purge = start_command("purge", "--yes", WATCHER_ACTION_PLAN_DAYS="30")
        wait_for(is_blocking)
        interrupt(purge)
        _, errors = purge.communicate(PATIENCE)
    assert purge.returncode != 0
    assert "Traceback" not in errors
    assert not ActionPlan.objects.filter(pk=first.pk).exists()
    assert (ActionPlan.objects.get(), second.actions.count(), Action.objects.count()) == (second, 98, 98)
    again = start_command("purge", "--yes", WATCHER_ACTION_PLAN_DAYS="30")
    assert again.wait(PATIENCE) == 0
    assert not ActionPlan.objects.exists()


def test_decision_engine_removes_old_history_at_its_interval() -> None:
    PeriodicPurge.objects.create(pk=PeriodicPurge.ONLY, ended_at=timezone.now() - timedelta(days=1))
    HistoryEntry.objects.create(deed="user.login")
    HistoryEntry.objects.update(created_at=timezone.now() - timedelta(days=366))
    engine = start_command("run_decision_engine", "--once")
    _, errors = engine.communicate(PATIENCE)
    assert engine.returncode == 0, errors
    assert list(HistoryEntry.objects.values_list("deed", "details")) == [("database.purge", {"History": 1})]


@pytest.mark.parametrize("name", ["WATCHER_ACTION_PLAN_DAYS", "WATCHER_AUDIT_DAYS"])
def test_age_that_is_not_a_number_is_refused_in_one_line_with_status_2(name: str) -> None:
    purge = start_fresh_command("purge", "--yes", **{name: "a year"})
    _, errors = purge.communicate(timeout=PATIENCE)
    assert (purge.returncode, errors) == (2, f"{name}: must be a number from 0 to 36525.\n")
