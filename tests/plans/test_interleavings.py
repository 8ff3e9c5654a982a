"""Interleaved operations: the second one waits for the locks of the first, or reads the changes of the first."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from actions.engine import execution
from actions.models import Action
from actions.operations import dependencies, skipping
from actions.operations.skipping import restore_action, restore_actions, skip_action, skip_actions
from actions.types.base import LeaseLost
from actions.types.nop import Nop
from plans.applier.applier import Applier
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from plans.models.querysets import ActionPlanQuerySet
from plans.planning import completion, continuation
from tests.api import Caller
from tests.builders import make_plan
from tests.interleaving import Rival, interrupt_after, interrupt_before
from tests.plans.inline import InlineExecutor, claim
from watcher_site.models import Service
from watcher_site.refusals import Conflict, Refused
from watcher_site.state_machine import ConcurrentTransition

pytestmark = [pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]


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
RESTORES = pytest.mark.parametrize("restore", [restore_one, restore_several])


@pytest.fixture
def appliers() -> list[Service]:
    return [Service.register(Service.APPLIER, host) for host in ("one", "two")]


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def running_plan(applier: Service) -> ActionPlan:
    return make_plan({"a": []}, state="ONGOING", applier=applier)


@SKIPS
def test_claim_waits_for_a_concurrent_skip(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service], cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    mine = again(plan)

    def claim_and_read() -> str:
        claim(mine, appliers[0])
        return str(mine.actions.get().state)

    applier = Rival(claim_and_read)
    interrupt_before(monkeypatch, skipping, "read_reason", applier)
    skip(plan)
    assert (applier.result(), plan.actions.get().state) == ("SKIPPED", "SKIPPED")


@SKIPS
def test_skip_waits_for_a_concurrent_claim_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service], cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    person = Rival(lambda: refused(lambda: skip(plan)))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    claim(again(plan), appliers[0])
    assert (person.result(), plan.actions.get().state) == (True, "PENDING")


def refused(verb: Callable[[], Any]) -> bool:
    try:
        return verb() is False
    except (ConcurrentTransition, Refused):
        return True


@SKIPS
def test_cancel_waits_for_a_concurrent_skip_and_reports_it(
    monkeypatch: pytest.MonkeyPatch, cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []})
    seen = again(plan)
    person = Rival(lambda: seen.abandon("bob"))
    interrupt_before(monkeypatch, skipping, "read_reason", person)
    skip(plan)
    person.result()
    assert (again(plan).state, plan.actions.get().state) == ("CANCELLED", "SKIPPED")
    assert "skipped. 1 of 1:" in (again(plan).status_message or "")


@SKIPS
def test_skip_waits_for_a_concurrent_cancel_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []})
    person = Rival(lambda: refused(lambda: skip(plan)))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    again(plan).abandon("bob")
    assert (person.result(), plan.actions.get().state) == (True, "CANCELLED")


@SKIPS
def test_start_waits_for_a_concurrent_skip_and_keeps_it(
    monkeypatch: pytest.MonkeyPatch, cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []})
    person = Rival(again(plan).launch)
    interrupt_before(monkeypatch, skipping, "read_reason", person)
    skip(plan)
    person.result()
    assert (again(plan).state, plan.actions.get().state) == ("PENDING", "SKIPPED")


@SKIPS
def test_skip_waits_for_a_concurrent_start_and_succeeds(
    monkeypatch: pytest.MonkeyPatch, cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []})
    person = Rival(lambda: refused(lambda: skip(plan)))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    again(plan).launch()
    assert (person.result(), again(plan).state, plan.actions.get().state) == (False, "PENDING", "SKIPPED")


@SKIPS
def test_deletion_waits_for_a_concurrent_skip(
    monkeypatch: pytest.MonkeyPatch, cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []})
    person = Rival(again(plan).remove)
    interrupt_before(monkeypatch, skipping, "read_reason", person)
    skip(plan)
    person.result()
    assert (plan.actions.get().deleted_at is not None, plan.actions.get().state) == (True, "SKIPPED")


@SKIPS
def test_skip_waits_for_a_concurrent_deletion_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, cloud_admin: User, skip: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []})
    person = Rival(lambda: refused(lambda: skip(plan)))
    interrupt_after(monkeypatch, ActionPlanQuerySet, "soft_delete", person)
    again(plan).remove()
    assert (person.result(), plan.actions.get().state) == (True, "PENDING")


@RESTORES
def test_claim_waits_for_a_concurrent_restore_and_the_action_is_ready(
    monkeypatch: pytest.MonkeyPatch,
    appliers: list[Service],
    cloud_admin: User,
    restore: Callable[[ActionPlan], Any],
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    skip_one(plan)
    mine = again(plan)

    def claim_and_read() -> int:
        claim(mine, appliers[0])
        return mine.actions.ready().count()

    applier = Rival(claim_and_read)
    interrupt_before(monkeypatch, skipping, "save_together", applier)
    restore(plan)
    assert (applier.result(), plan.actions.get().state) == (1, "PENDING")


@RESTORES
def test_restore_waits_for_a_concurrent_claim_and_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    appliers: list[Service],
    cloud_admin: User,
    restore: Callable[[ActionPlan], Any],
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    skip_one(plan)
    person = Rival(lambda: refused(lambda: restore(plan)))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    claim(again(plan), appliers[0])
    assert (person.result(), plan.actions.get().state) == (True, "SKIPPED")


@RESTORES
def test_restore_waits_for_a_concurrent_restore_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, cloud_admin: User, restore: Callable[[ActionPlan], Any]
) -> None:
    plan = make_plan({"a": []})
    skip_one(plan)
    other = Rival(lambda: refused(lambda: restore(plan)))
    interrupt_before(monkeypatch, skipping, "save_together", other)
    restore(plan)
    assert (other.result(), plan.actions.get().state) == (True, "PENDING")


def test_start_waits_for_a_concurrent_start_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []})
    late = again(plan)
    other = Rival(lambda: refused(late.launch))
    interrupt_after(monkeypatch, ActionPlan, "save_state", other)
    again(plan).launch()
    assert (other.result(), again(plan).state) == (True, "PENDING")


def test_start_waits_for_a_concurrent_cancel_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []})
    late = again(plan)
    person = Rival(lambda: refused(late.launch))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    again(plan).abandon("bob")
    assert (person.result(), again(plan).state) == (True, "CANCELLED")


def test_cancel_waits_for_a_concurrent_start_and_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []})
    late = again(plan)
    person = Rival(lambda: refused(lambda: late.abandon("bob")))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    again(plan).launch()
    assert (person.result(), again(plan).state, plan.actions.get().state) == (True, "PENDING", "PENDING")


def test_claim_waits_for_a_concurrent_cancel_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    mine = again(plan)
    applier = Rival(lambda: refused(lambda: claim(mine, appliers[0])))
    interrupt_after(monkeypatch, ActionPlan, "save_state", applier)
    again(plan).abandon("bob")
    assert (applier.result(), again(plan).state, plan.actions.get().state) == (True, "CANCELLED", "CANCELLED")


def test_cancel_waits_for_a_concurrent_claim_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    seen = again(plan)
    person = Rival(lambda: refused(lambda: seen.abandon("bob")))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    claim(again(plan), appliers[0])
    assert (person.result(), again(plan).state, plan.actions.get().state) == (True, "ONGOING", "PENDING")


def test_claim_waits_for_a_concurrent_claim_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = make_plan(state="PENDING")
    first, late = again(plan), again(plan)
    other = Rival(lambda: refused(lambda: claim(late, appliers[1])))
    interrupt_after(monkeypatch, ActionPlan, "save_state", other)
    claim(first, appliers[0])
    assert (other.result(), again(plan).applier) == (True, appliers[0])


def test_plan_claimed_by_another_applier_between_two_queries_is_not_set_aside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan(state="PENDING")
    late, first = Applier(InlineExecutor()), Applier(InlineExecutor())
    other = Rival(first.claim)
    interrupt_before(monkeypatch, Applier, "guarding", other)
    late.claim()
    other.result()
    assert again(plan).applier == first.service
    assert (late.runs, late.faulty) == ({}, {})


def test_adoption_waits_for_a_concurrent_adoption_and_fails(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = make_plan(state="ONGOING")
    free = ActionPlan.objects.filter(pk=plan.pk, applier=None)
    other = Rival(lambda: free.all().adopt(appliers[1]))
    interrupt_after(monkeypatch, ActionPlanQuerySet, "adopt", other)
    assert free.adopt(appliers[0])
    assert (other.result(), again(plan).applier) == (False, appliers[0])


def test_completion_of_a_concurrently_cancelled_plan_is_refused(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = running_plan(appliers[0])
    person = Rival(lambda: again(plan).abandon("alice"))
    interrupt_before(monkeypatch, completion, "summarize", person)
    with pytest.raises(ConcurrentTransition):
        completion.complete_plan(again(plan), {"SUCCEEDED": 1})
    person.result()
    assert again(plan).state == "CANCELLING"


def test_cancel_during_the_completion_of_a_plan_is_refused(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = running_plan(appliers[0])
    seen = again(plan)
    person = Rival(lambda: refused(lambda: seen.abandon("alice")))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    completion.complete_plan(again(plan), {"SUCCEEDED": 1})
    assert (person.result(), again(plan).state) == (True, "SUCCEEDED")


def test_action_whose_plan_is_cancelled_during_pre_condition_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = running_plan(appliers[0])
    person = Rival(lambda: again(plan).abandon("alice"))
    interrupt_before(monkeypatch, Nop, "pre_condition", person)
    assert not execution.execute(plan.actions.get(), PlanLease.of(plan, appliers[0]))
    person.result()
    assert plan.actions.get().state == "PENDING"


def test_cancel_waits_for_an_action_that_begins_and_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = running_plan(appliers[0])
    seen = again(plan)

    def cancel() -> int:
        seen.abandon("alice")
        return seen.actions.cancel_pending("cancelled")

    person = Rival(cancel)
    interrupt_after(monkeypatch, Action, "save_state", person)
    execution.execute(plan.actions.get(), PlanLease.of(plan, appliers[0]))
    assert person.result() == 0
    assert plan.actions.filter(attempt=1).exclude(state="PENDING").exists()


def test_action_whose_plan_is_adopted_during_pre_condition_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = running_plan(appliers[0])
    successor = Rival(lambda: ActionPlan.objects.filter(pk=plan.pk).update(applier=appliers[1]))
    interrupt_before(monkeypatch, Nop, "pre_condition", successor)
    assert not execution.execute(plan.actions.get(), PlanLease.of(plan, appliers[0]))
    assert (successor.result(), plan.actions.get().state) == (1, "PENDING")


def test_adoption_waits_for_an_action_that_begins_and_reads_its_state(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = running_plan(appliers[0])

    def adopt_and_read() -> str:
        ActionPlan.objects.filter(pk=plan.pk).update(applier=appliers[1])
        return str(plan.actions.get().state)

    successor = Rival(adopt_and_read)
    interrupt_after(monkeypatch, Action, "save_state", successor)
    execution.execute(plan.actions.get(), PlanLease.of(plan, appliers[0]))
    assert successor.result() != "PENDING"


def test_outcome_of_a_slow_worker_is_discarded_after_another_attempt_began(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = running_plan(appliers[0])

    def run_again() -> bool:
        ActionPlan.objects.filter(pk=plan.pk).update(applier=appliers[1])
        successor = plan.actions.get()
        successor.begin_again()
        successor.save_state()
        return True

    successor = Rival(run_again)
    interrupt_before(monkeypatch, Nop, "execute", successor)
    assert not execution.execute(plan.actions.get(), PlanLease.of(plan, appliers[0]))
    successor.result()
    assert list(plan.actions.values_list("state", "attempt")) == [("ONGOING", 2)]


def test_outcome_of_a_slow_worker_is_discarded_during_the_recovery_of_the_action(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    """Otherwise the action would end during its recovery."""
    plan = running_plan(appliers[0])

    def take_over() -> None:
        ActionPlan.objects.filter(pk=plan.pk).update(applier=appliers[1])
        # It dies during the recovery.
        monkeypatch.setattr(Nop, "recover", lambda _: (_ for _ in ()).throw(LeaseLost))
        execution.recover(plan.actions.get(), PlanLease.of(plan, appliers[1]))

    successor = Rival(take_over)
    interrupt_before(monkeypatch, Nop, "execute", successor)
    assert not execution.execute(plan.actions.get(), PlanLease.of(plan, appliers[0]))
    successor.result()
    assert list(plan.actions.values_list("state", "owner")) == [("ONGOING", appliers[1].pk)]


def test_completion_of_a_plan_adopted_by_another_applier_is_refused(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = running_plan(appliers[0])
    successor = Rival(lambda: ActionPlan.objects.filter(pk=plan.pk).update(applier=appliers[1]))
    interrupt_before(monkeypatch, completion, "summarize", successor)
    with pytest.raises(ConcurrentTransition):
        completion.complete_plan(again(plan), {"SUCCEEDED": 1})
    successor.result()
    assert (again(plan).state, again(plan).applier) == ("ONGOING", appliers[1])


def test_continuation_waits_for_a_concurrent_continuation_and_is_refused_with_its_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": []}, state="FAILED")
    plan.actions.update(state="FAILED")

    def too_late() -> str:
        with pytest.raises(Conflict) as refusal:
            continuation.continue_plan(again(plan))
        return str(refusal.value)

    late = Rival(too_late)
    interrupt_before(monkeypatch, continuation, "propose", late)
    first = continuation.continue_plan(again(plan))
    assert f"continued already, by {first.uuid}" in late.result()


def test_continuation_of_a_plan_that_is_being_deleted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="FAILED")
    plan.actions.update(state="FAILED")
    late = Rival(lambda: refused(lambda: continuation.continue_plan(plan)))
    interrupt_after(monkeypatch, ActionPlanQuerySet, "soft_delete", late)
    again(plan).remove()
    assert late.result() is True


def test_claim_waits_for_a_concurrent_change_of_dependencies(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = make_plan({"a": [], "b": []}, state="PENDING")
    first, second = plan.actions.order_by("pk")
    mine = again(plan)

    def claim_and_read() -> list[int]:
        claim(mine, appliers[0])
        return list(mine.actions.ready().values_list("pk", flat=True))

    applier = Rival(claim_and_read)
    interrupt_before(monkeypatch, dependencies, "check_graph_with", applier)
    dependencies.change_dependencies(first.uuid, lambda _: [second.uuid])
    assert applier.result() == [second.pk]


def test_change_of_dependencies_waits_for_a_concurrent_claim_and_is_refused(
    monkeypatch: pytest.MonkeyPatch, appliers: list[Service]
) -> None:
    plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
    child = plan.actions.order_by("pk")[1]
    person = Rival(lambda: refused(lambda: dependencies.change_dependencies(child.uuid, lambda _: [])))
    interrupt_after(monkeypatch, ActionPlan, "save_state", person)
    claim(again(plan), appliers[0])
    assert (person.result(), child.parents.count()) == (True, 1)


def test_second_of_two_concurrent_changes_that_would_make_a_cycle_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = make_plan({"a": [], "b": []})
    first, second = plan.actions.order_by("pk")
    other = Rival(lambda: refused(lambda: dependencies.change_dependencies(second.uuid, lambda _: [first.uuid])))
    interrupt_before(monkeypatch, dependencies, "check_graph_with", other)
    dependencies.change_dependencies(first.uuid, lambda _: [second.uuid])
    assert (other.result(), second.parents.count()) == (True, 0)
