"""Isolated jobs, which run alone in a process, and jobs that share it."""

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest
from django.db import connections

from actions.engine import execution
from actions.models import Action
from plans.applier.plan_run import PlanRun
from plans.executors import Job, ThreadExecutor
from plans.executors.leases import PlanLease
from plans.executors.threads import Isolation
from tests.builders import make_plan
from tests.plans.inline import InlineExecutor
from tests.waiting import PATIENCE, wait_for
from watcher_site.models import Service

LEASE = PlanLease(1, 1, "here")


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadExecutor]:
    executor = ThreadExecutor(3)
    yield executor
    executor.stop()


class Work:
    """A job that reports its start, and ends on request."""

    def __init__(self) -> None:
        self.began, self.may_end = Event(), Event()

    def __call__(self, action: Any, lease: Any, slot: Any) -> bool:
        self.began.set()
        self.may_end.wait(PATIENCE)
        connections.close_all()
        return True


class Suspended(Work):
    """A job that waits while its action is suspended, and then continues."""

    def __init__(self) -> None:
        super().__init__()
        self.is_resumed, self.continued = Event(), Event()

    def __call__(self, action: Any, lease: Any, slot: Any) -> bool:
        with slot.vacated():
            self.began.set()
            self.is_resumed.wait(PATIENCE)
        self.continued.set()
        return super().__call__(action, lease, slot)


def submit(executor: ThreadExecutor, work: Work, alone: bool = False) -> Work:
    executor.submit(Job(work, Action(), LEASE, alone=alone))
    return work


def test_isolated_job_begins_after_the_running_jobs_ended(executor: ThreadExecutor) -> None:
    shared = submit(executor, Work())
    assert shared.began.wait(PATIENCE)
    alone = submit(executor, Work(), alone=True)
    wait_for(lambda: executor.isolation.waiting)
    assert not alone.began.is_set()
    shared.may_end.set()
    assert alone.began.wait(PATIENCE)
    alone.may_end.set()


def test_no_job_begins_while_an_isolated_job_runs(executor: ThreadExecutor) -> None:
    alone = submit(executor, Work(), alone=True)
    assert alone.began.wait(PATIENCE)
    shared = submit(executor, Work())
    wait_for(lambda: executor.jobs.empty())
    assert not shared.began.is_set()
    alone.may_end.set()
    assert shared.began.wait(PATIENCE)
    shared.may_end.set()


def test_isolated_job_does_not_wait_for_a_suspended_action(executor: ThreadExecutor) -> None:
    suspended = Suspended()
    submit(executor, suspended)
    assert suspended.began.wait(PATIENCE)
    alone = submit(executor, Work(), alone=True)
    assert alone.began.wait(PATIENCE)
    suspended.is_resumed.set()
    wait_for(lambda: not executor.suspended)
    assert not suspended.continued.is_set()
    alone.may_end.set()
    assert suspended.continued.wait(PATIENCE)
    suspended.may_end.set()


def test_isolated_job_does_not_wait_for_a_hung_job(executor: ThreadExecutor) -> None:
    stuck = Work()
    executor.submit(Job(stuck, Action(), LEASE, limit=0))
    assert stuck.began.wait(PATIENCE)
    wait_for(executor.release_hung_jobs)
    alone = submit(executor, Work(), alone=True)
    assert alone.began.wait(PATIENCE)
    alone.may_end.set()
    stuck.may_end.set()


def test_isolated_jobs_run_one_after_the_other() -> None:
    isolation, ended = Isolation(), Event()
    isolation.acquire(alone=True)

    def enter() -> None:
        isolation.acquire(alone=True)
        ended.set()

    other = Thread(target=enter)
    other.start()
    wait_for(lambda: isolation.waiting)
    assert not ended.is_set()
    isolation.release(alone=True)
    assert ended.wait(PATIENCE)
    other.join()


@pytest.mark.django_db
@pytest.mark.parametrize(("losses", "alone"), [(0, False), (execution.SHARED_LOSSES, True)])
def test_plan_isolates_an_action_whose_worker_died_repeatedly(losses: int, alone: bool) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state="ONGOING", losses=losses)
    run = PlanRun(plan, Service.register(Service.APPLIER, "here"), InlineExecutor())
    run.recover()
    job = run.next_job(InlineExecutor().free_queues)
    assert job is not None
    assert job.alone is alone
