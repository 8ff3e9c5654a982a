"""Races of approvals with real threads on PostgreSQL: no plan starts without the approval of its current actions."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from pytest_django import Settings

from actions.operations import skipping
from actions.operations.skipping import restore_action, skip_action
from plans.models import ActionPlan
from plans.operations.approval import approve_plan, version_of_actions, withdraw_approval
from tests.builders import action, make_plan
from tests.interleaving import Rival, interrupt_before
from tests.races import ROUNDS, Race
from watcher_site.refusals import Conflict
from watcher_site.request_context import CallingContext

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ALICE = CallingContext(user="alice")


@pytest.fixture(autouse=True)
def _approval_is_required(settings: Settings) -> None:
    settings.PLAN_APPROVAL = True


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def make_plan_with_skipped_action() -> ActionPlan:
    plan = make_plan({"a": [], "b": []})
    skip_action(action(plan, "a").uuid, "alice")
    return plan


def test_start_and_withdrawal_exclude_each_other() -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []})
            approve_plan(plan, "bob")
            mine = again(plan)
            started, withdrawn = race.run(
                lambda mine=mine: mine.launch(ALICE), lambda plan=plan: withdraw_approval(plan)
            )
            assert started != withdrawn
            found = again(plan)
            assert (found.state, found.approved_by) == (("PENDING", "bob") if started else ("RECOMMENDED", None))


def test_start_and_restore_of_an_action_exclude_each_other() -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan_with_skipped_action()
            approve_plan(plan, "bob")
            mine, skipped = again(plan), action(plan, "a").uuid
            started, restored = race.run(
                lambda mine=mine: mine.launch(ALICE), lambda skipped=skipped: restore_action(skipped)
            )
            assert started != restored
            found = again(plan)
            assert (found.state, found.approved_by, action(plan, "a").state) == (
                ("PENDING", "bob", "SKIPPED") if started else ("RECOMMENDED", None, "PENDING")
            )


def test_plan_is_not_started_by_a_user_who_read_it_before_a_concurrent_approval() -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []})
            mine = again(plan)
            won = race.run(lambda mine=mine: mine.launch(ALICE), lambda plan=plan: approve_plan(plan, "bob"))
            assert won == [False, True]
            assert (again(plan).state, again(plan).approved_by) == ("RECOMMENDED", "bob")


def test_one_of_two_users_approves_a_plan() -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan({"a": []})
            won = race.run(lambda plan=plan: approve_plan(plan, "bob"), lambda plan=plan: approve_plan(plan, "rosa"))
            assert sorted(won) == [False, True]
            assert again(plan).approved_by == ("bob" if won[0] else "rosa")


def test_approval_that_precedes_a_concurrent_restore_is_withdrawn() -> None:
    """Either the restore is first, and the approval covers it, or the approval is first, and is withdrawn."""
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan_with_skipped_action()
            skipped = action(plan, "a").uuid
            won = race.run(
                lambda plan=plan: approve_plan(plan, "bob"), lambda skipped=skipped: restore_action(skipped)
            )
            assert won == [True, True]
            found, restored = again(plan), action(plan, "a")
            assert found.approved_by is None or found.approved_at > restored.updated_at


def shown(plan: ActionPlan) -> str:
    return version_of_actions(plan.actions.all().latest_changes())


def test_no_approval_of_the_shown_actions_covers_a_concurrent_restore() -> None:
    with Race() as race:
        for _ in range(ROUNDS):
            plan = make_plan_with_skipped_action()
            skipped, version = action(plan, "a").uuid, shown(plan)
            _, restored = race.run(
                lambda plan=plan, version=version: approve_plan(plan, "bob", version),
                lambda skipped=skipped: restore_action(skipped),
            )
            assert restored
            # The restore withdraws an approval that was first. An approval that was second is refused.
            assert again(plan).approved_by is None


@pytest.mark.parametrize(
    ("change", "name", "step"),
    [(restore_action, "a", "withdraw_approvals"), (partial(skip_action, by="alice"), "b", "save_together")],
    ids=["restore", "skip"],
)
def test_approval_waits_for_a_change_of_the_actions_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[UUID], Any], name: str, step: str
) -> None:
    plan = make_plan_with_skipped_action()
    version = shown(plan)
    approval = Rival(lambda: approve_plan(plan, "bob", version))
    interrupt_before(monkeypatch, skipping, step, approval)
    change(action(plan, name).uuid)
    with pytest.raises(Conflict, match="have changed since they were shown"):
        approval.result()
    assert again(plan).approved_by is None
