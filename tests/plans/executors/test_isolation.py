"""Jobs that must run alone in a process, and jobs that share it."""

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
    """A job that reports its begin, and ends on request."""

    def __init__(self) -> None:
        self.began, self.may_end = Event(), Event()

    def __call__(self, action: Any, lease: Any, slot: Any) -> bool:
        self.began.set()
        self.may_end.wait(PATIENCE)
        connections.close_all()
        return True


class Suspended(Work):
    """A job that waits with its action suspended, then goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_resumed, self.went_on = Event(), Event()

    def __call__(self, action: Any, lease: Any, slot: Any) -> bool:
        with slot.vacated():
            self.began.set()
            self.is_resumed.wait(PATIENCE)
        self.went_on.set()
        return super().__call__(action, lease, slot)


def submit(executor: ThreadExecutor, work: Work, alone: bool = False) -> Work:
    executor.submit(Job(work, Action(), LEASE, alone=alone))
    return work


def test_a_job_that_must_be_alone_begins_when_the_running_jobs_have_ended(executor: ThreadExecutor) -> None:
    shared = submit(executor, Work())
    assert shared.began.wait(PATIENCE)
    alone = submit(executor, Work(), alone=True)
    wait_for(lambda: executor.isolation.waiting)
    assert not alone.began.is_set()
    shared.may_end.set()
    assert alone.began.wait(PATIENCE)
    alone.may_end.set()


def test_no_job_begins_beside_one_that_is_alone(executor: ThreadExecutor) -> None:
    alone = submit(executor, Work(), alone=True)
    assert alone.began.wait(PATIENCE)
    shared = submit(executor, Work())
    wait_for(lambda: executor.jobs.empty())
    assert not shared.began.is_set()
    alone.may_end.set()
    assert shared.began.wait(PATIENCE)
    shared.may_end.set()


def test_a_job_whose_action_is_suspended_is_not_waited_for(executor: ThreadExecutor) -> None:
    suspended = Suspended()
    submit(executor, suspended)
    assert suspended.began.wait(PATIENCE)
    alone = submit(executor, Work(), alone=True)
    assert alone.began.wait(PATIENCE)
    suspended.is_resumed.set()
    wait_for(lambda: not executor.suspended)
    assert not suspended.went_on.is_set()
    alone.may_end.set()
    assert suspended.went_on.wait(PATIENCE)
    suspended.may_end.set()


def test_a_job_that_was_given_up_is_not_waited_for(executor: ThreadExecutor) -> None:
    stuck = Work()
    executor.submit(Job(stuck, Action(), LEASE, limit=0))
    assert stuck.began.wait(PATIENCE)
    wait_for(executor.release_hung_jobs)
    alone = submit(executor, Work(), alone=True)
    assert alone.began.wait(PATIENCE)
    alone.may_end.set()
    stuck.may_end.set()


def test_of_two_jobs_that_must_be_alone_one_waits_for_the_other() -> None:
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
def test_a_plan_isolates_an_action_that_lost_its_process_often(losses: int, alone: bool) -> None:
    plan = make_plan({"a": []}, state="ONGOING")
    plan.actions.update(state="ONGOING", losses=losses)
    run = PlanRun(plan, Service.register(Service.APPLIER, "here"), InlineExecutor())
    run.recover()
    job = run.next_job(InlineExecutor().free_queues)
    assert job is not None
    assert job.alone is alone
