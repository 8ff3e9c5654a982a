"""Races with real threads on PostgreSQL: exactly one of two exclusive operations succeeds."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django_fsm import ConcurrentTransition, TransitionNotAllowed

from actions.engine import execution
from actions.operations.skipping import restore_action, restore_actions, skip_action, skip_actions
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.planning.completion import complete_plan
from plans.planning.continuation import continue_plan
from tests.api import Caller
from tests.builders import make_plan
from tests.rounds import rounds
from tests.waiting import PATIENCE
from watcher_site.models import Service
from watcher_site.refusals import Refused

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
# `tests.chaos` runs thousands of rounds.
ROUNDS = rounds(60)


class Race:
    """Two threads that start each round together, and keep their database connections."""

    def __enter__(self) -> "Race":
        self.barrier = Barrier(2)
        self.pool = ThreadPoolExecutor(2)
        return self

    def __exit__(self, *_: Any) -> None:
        for future in [self.pool.submit(self.leave) for _ in range(2)]:
            future.result()
        self.pool.shutdown()

    def leave(self) -> None:
        self.barrier.wait(PATIENCE)
        connections.close_all()

    def run(self, *operations: Callable[[], Any]) -> list[bool]:
        """Return for each operation whether it succeeded: it was not refused, and did not return false."""
        futures = [self.pool.submit(self.start, operation) for operation in operations]
        return [future.result() for future in futures]

    def start(self, operation: Callable[[], Any]) -> bool:
        self.barrier.wait(PATIENCE)
        try:
            return operation() is not False
        except (ConcurrentTransition, TransitionNotAllowed, Refused, ActionPlan.DoesNotExist):
            return False


def claim(plan: ActionPlan, applier: Service) -> None:
    plan.begin(applier)
    plan.save_state()


def skip_one(plan: ActionPlan) -> None:
    skip_action(plan.actions.get().uuid, "alice")


def skip_several(plan: ActionPlan) -> None:
    skip_actions(plan, [plan.actions.get().uuid], "alice")


def patch(plan: ActionPlan) -> bool:
    document = [{"op": "replace", "path": "/state", "value": "SKIPPED"}]
    answer = Caller(User.objects.get()).patch(f"/actions/{plan.actions.get().uuid}", document)
    assert answer.status_code in {200, 403, 404, 409}, answer.content
    return answer.status_code == 200


def restore_one(plan: ActionPlan) -> None:
    restore_action(plan.actions.get().uuid)


def restore_several(plan: ActionPlan) -> None:
    restore_actions(plan, [plan.actions.get().uuid])


SKIPS = pytest.mark.parametrize("skip", [skip_one, skip_several, patch])


@pytest.fixture
def appliers() -> list[Service]:
    return [Service.register(Service.APPLIER, host) for host in ("one", "two")]


def test_one_of_two_appliers_claims_a_plan(appliers: list[Service]) -> None:
    with Race() as race:
        for _ in range(rounds(10)):
            plan = make_plan(state="PENDING")
            mine, yours = (ActionPlan.objects.get(pk=plan.pk) for _ in range(2))
            won = race.run(lambda mine=mine: claim(mine, appliers[0]), lambda yours=yours: claim(yours, appliers[1]))
            assert sorted(won) == [False, True]
            assert ActionPlan.objects.get(pk=plan.pk).applier == appliers[won.index(True)]


def test_one_of_two_appliers_adopts_a_plan(appliers: list[Service]) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan(state="ONGOING")
            free = ActionPlan.objects.filter(pk=plan.pk, applier=None)
            won = race.run(lambda free=free: free.adopt(appliers[0]), lambda free=free: free.adopt(appliers[1]))
            assert sorted(won) == [False, True]
            assert ActionPlan.objects.get(pk=plan.pk).applier == appliers[won.index(True)]


@SKIPS
def test_skip_and_claim_of_an_action_exclude_each_other(
    appliers: list[Service], cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    """Either the skip is first, and the action is not executed, or the claim is first, and the skip is refused."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []}, state="PENDING")
            mine = ActionPlan.objects.get(pk=plan.pk)

            def run(mine: ActionPlan = mine) -> bool:
                claim(mine, appliers[0])
                ready = mine.actions.ready().first()
                return bool(ready) and execution.execute(ready, PlanLease.of(mine, appliers[0]))

            executed, skipped = race.run(run, lambda plan=plan: skip(plan))
            assert executed != skipped
            assert plan.actions.get().state == ("SKIPPED" if skipped else "SUCCEEDED")


@SKIPS
def test_successful_skip_precedes_the_claim(
    appliers: list[Service], cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    """A skip does not change the plan after the applier has claimed it."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []}, state="PENDING")
            mine = ActionPlan.objects.get(pk=plan.pk)
            seen: list[str] = []

            def look(mine: ActionPlan = mine, seen: list[str] = seen) -> None:
                claim(mine, appliers[0])
                seen.append(mine.actions.get().state)

            _, skipped = race.run(look, lambda plan=plan: skip(plan))
            assert seen == ["SKIPPED" if skipped else "PENDING"]


@SKIPS
def test_skip_and_cancel_of_an_action_exclude_each_other(cloud_admin: User, skip: Callable[[ActionPlan], Any]) -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []})
            theirs = ActionPlan.objects.get(pk=plan.pk)
            cancelled, skipped = race.run(lambda theirs=theirs: theirs.abandon("bob"), lambda plan=plan: skip(plan))
            assert cancelled
            assert plan.actions.get().state == ("SKIPPED" if skipped else "CANCELLED")


@SKIPS
def test_start_of_a_plan_does_not_undo_a_concurrent_skip(cloud_admin: User, skip: Callable[[ActionPlan], Any]) -> None:
    """A plan may be pruned before and after its start: both operations succeed."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []})
            theirs = ActionPlan.objects.get(pk=plan.pk)
            assert race.run(theirs.launch, lambda plan=plan: skip(plan)) == [True, True]
            assert plan.actions.get().state == "SKIPPED"


@SKIPS
def test_skip_and_deletion_of_an_action_leave_a_consistent_state(
    cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    """A removed action cannot be skipped, and a skipped one is removed with its plan."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []})
            theirs = ActionPlan.objects.get(pk=plan.pk)
            removed, skipped = race.run(theirs.remove, lambda plan=plan: skip(plan))
            assert removed
            row = plan.actions.get()
            assert row.deleted_at
            assert row.state == ("SKIPPED" if skipped else "PENDING")


def test_cancel_and_completion_of_a_plan_exclude_each_other(appliers: list[Service]) -> None:
    with Race() as race:
        for _ in range(rounds(10)):
            plan = make_plan({"a": []}, state="ONGOING", applier=appliers[0])
            plan.actions.update(state="SUCCEEDED")
            mine, theirs = (ActionPlan.objects.get(pk=plan.pk) for _ in range(2))
            settled, cancelled = race.run(
                lambda mine=mine: complete_plan(mine, {"SUCCEEDED": 1}), lambda theirs=theirs: theirs.abandon("alice")
            )
            assert settled != cancelled
            assert ActionPlan.objects.get(pk=plan.pk).state == ("SUCCEEDED" if settled else "CANCELLING")


def test_no_action_begins_after_its_plan_is_cancelled(appliers: list[Service]) -> None:
    """Actions that are PENDING at the cancellation stay PENDING; others began before it."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []}, state="ONGOING", applier=appliers[0])
            action, theirs = plan.actions.get(), ActionPlan.objects.get(pk=plan.pk)

            def cancel(theirs: ActionPlan = theirs) -> bool:
                theirs.abandon("alice")
                return bool(theirs.actions.cancel_pending("cancelled"))

            lease = PlanLease.of(plan, appliers[0])
            executed, cancelled = race.run(lambda action=action, lease=lease: execution.execute(action, lease), cancel)
            assert executed != cancelled
            assert plan.actions.get().state == ("SUCCEEDED" if executed else "CANCELLED")


def test_no_action_begins_for_an_applier_that_lost_its_plan(appliers: list[Service]) -> None:
    """The new applier reads all actions that began before it, and no action begins afterwards."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []}, state="ONGOING", applier=appliers[0])
            action = plan.actions.get()
            seen: list[str] = []

            def adopt(plan: ActionPlan = plan, seen: list[str] = seen) -> None:
                ActionPlan.objects.filter(pk=plan.pk).update(applier=appliers[1])
                seen.append(plan.actions.get().state)

            lease = PlanLease.of(plan, appliers[0])
            executed, _ = race.run(lambda action=action, lease=lease: execution.execute(action, lease), adopt)
            assert executed == (seen != ["PENDING"])


def test_restore_and_claim_of_an_action_leave_a_consistent_state(appliers: list[Service], cloud_admin: User) -> None:
    """Either the restore is first, and the action is executed, or the claim is first, and the action stays skipped."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []}, state="PENDING")
            skip_one(plan)
            mine = ActionPlan.objects.get(pk=plan.pk)
            claimed, restored = race.run(
                lambda mine=mine: claim(mine, appliers[0]), lambda plan=plan: restore_one(plan)
            )
            assert claimed
            assert plan.actions.get().state == ("PENDING" if restored else "SKIPPED")


def test_one_of_two_concurrent_restores_succeeds(cloud_admin: User) -> None:
    with Race() as race:
        for _ in range(rounds(20)):
            plan = make_plan({"a": []})
            skip_one(plan)
            assert sorted(race.run(lambda plan=plan: restore_one(plan), lambda plan=plan: restore_one(plan))) == [
                False,
                True,
            ]


def test_one_of_two_concurrent_continuations_succeeds() -> None:
    with Race() as race:
        for _ in range(rounds(10)):
            plan = make_plan({"a": []}, state="FAILED")
            plan.actions.update(state="FAILED")
            mine, yours = (ActionPlan.objects.get(pk=plan.pk) for _ in range(2))
            won = race.run(lambda mine=mine: continue_plan(mine), lambda yours=yours: continue_plan(yours))
            assert sorted(won) == [False, True]
            assert ActionPlan.objects.filter(continues=plan).count() == 1
