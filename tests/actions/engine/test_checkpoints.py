"""The checkpoint of a running action: its query, how often it runs, and the interruptions that it raises."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError
from pytest_django import Settings

from actions.engine.checkpoints import Checkpoint
from actions.models import Action
from actions.types.base import AbortRequested, Interruption, LeaseLost
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.builders import make_plan
from tests.plans.applier.test_commits import counted
from watcher_site.models import Service

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the times of the clock, in seconds; the last one is the current time."""
    seconds = [0.0]
    monkeypatch.setattr("actions.engine.checkpoints.time.monotonic", lambda: seconds[-1])
    return seconds


@pytest.fixture
def begun() -> Action:
    """Return a running action of an applier on the host "here"."""
    plan = make_plan({"a": []}, state="ONGOING", applier=Service.register(Service.APPLIER, "here"))
    plan.actions.update(state="ONGOING", attempt=1)
    return plan.actions.get()


@pytest.fixture
def checkpoint(clock: list[float], begun: Action) -> Checkpoint:
    plan = begun.action_plan
    made = Checkpoint(begun, PlanLease.of(plan, plan.applier))
    made.is_interruptible = True
    return made


def test_checkpoint_makes_one_query_per_poll_interval(
    checkpoint: Checkpoint, clock: list[float], settings: Settings
) -> None:
    settings.POLL_INTERVAL = 1
    with counted() as statements:
        for second in (0, 0.5, 0.9, 1, 1.1, 1.9, 2, 2.5):
            clock.append(second)
            checkpoint()
    assert len(statements) == 2


def adopt(one: Action) -> None:
    other = Service.register(Service.APPLIER, "elsewhere")
    ActionPlan.objects.filter(pk=one.action_plan_id).update(applier=other)


def release(one: Action) -> None:
    ActionPlan.objects.filter(pk=one.action_plan_id).update(applier=None)


def settle(one: Action) -> None:
    ActionPlan.objects.filter(pk=one.action_plan_id).update(state="FAILED")


def start_next_attempt(one: Action) -> None:
    Action.objects.filter(pk=one.pk).update(attempt=2)


def fail_action(one: Action) -> None:
    Action.objects.filter(pk=one.pk).update(state="FAILED")


def cancel(one: Action) -> None:
    ActionPlan.objects.get(pk=one.action_plan_id).abandon("alice")


@pytest.mark.parametrize(
    ("happens", "interruption"),
    [
        (adopt, LeaseLost),
        (release, LeaseLost),
        (settle, LeaseLost),
        (start_next_attempt, LeaseLost),
        (fail_action, LeaseLost),
        (cancel, AbortRequested),
    ],
)
def test_checkpoint_raises_if_the_lease_is_lost_or_the_plan_is_cancelled(
    checkpoint: Checkpoint,
    clock: list[float],
    begun: Action,
    happens: Callable[[Action], None],
    interruption: type[Interruption],
) -> None:
    happens(begun)
    clock.append(1)
    with pytest.raises(interruption):
        checkpoint()


def test_checkpoint_of_an_uninterruptible_phase_ignores_a_cancelled_plan(
    checkpoint: Checkpoint, clock: list[float], begun: Action
) -> None:
    cancel(begun)
    checkpoint.is_interruptible = False
    clock.append(1)
    checkpoint()


def lost_database(*_: Any) -> None:
    raise OperationalError("the server closed the connection")


def test_checkpoint_without_database_raises_only_after_the_service_down_time(
    monkeypatch: pytest.MonkeyPatch, checkpoint: Checkpoint, clock: list[float], settings: Settings
) -> None:
    settings.SERVICE_DOWN_TIME = 60
    monkeypatch.setattr(PlanLease, "look", lost_database)
    for second in (1, 30, 60):
        clock.append(second)
        checkpoint()
    clock.append(61)
    with pytest.raises(LeaseLost):
        checkpoint()


def test_lease_can_be_pickled(begun: Action) -> None:
    lease = PlanLease.of(begun.action_plan, begun.action_plan.applier)
    assert pickle.loads(pickle.dumps(lease)) == lease  # noqa: S301 (it was made here)
    assert PlanLease(lease.plan, lease.applier, lease.host, plan_uuid=lease.plan_uuid) == lease
