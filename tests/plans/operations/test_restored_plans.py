"""The plans of a restored database are suspended, and continue after a user has reviewed them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from actions.models import Action
from plans.applier.applier import Applier
from plans.models import ActionPlan
from plans.operations.signals import signal_plan, suspend_restored_plans
from tests.builders import action, make_plan
from tests.interleaving import Rival, interrupt_before
from tests.plans.inline import InlineExecutor, run_waiting
from tests.races import Race, rounds
from watcher_site.models import HistoryEntry
from watcher_site.request_context import CallingContext, on_behalf_of

pytestmark = pytest.mark.django_db
MESSAGE = (
    "Suspended after a restore: actions that ran after the backup may be executed again."
    " Review the plan, then resume it."
)


def again(plan: ActionPlan) -> ActionPlan:
    return ActionPlan.objects.get(pk=plan.pk)


def make_running_plan() -> ActionPlan:
    """Make a plan with a running action, whose applier is lost."""
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING")
    plan.actions.filter(input_parameters__message="a").update(state="ONGOING", attempt=1)
    return plan


def states(plan: ActionPlan) -> list[str]:
    return list(plan.actions.order_by("pk").values_list("state", flat=True))


@pytest.mark.parametrize("state", ["PENDING", "ONGOING"])
def test_unfinished_plan_is_suspended_with_a_message(state: str) -> None:
    plan = make_plan({"a": []}, state=state)
    assert suspend_restored_plans("olga") == [plan]
    found = again(plan)
    assert (found.state, found.suspended_by, found.status_message, found.signals) == (state, "olga", MESSAGE, 1)


@pytest.mark.parametrize("state", ["RECOMMENDED", "CANCELLING", "SUCCEEDED", "FAILED", "CANCELLED", "SUPERSEDED"])
def test_plan_in_another_state_is_unchanged(state: str) -> None:
    plan = make_plan({"a": []}, state=state)
    assert suspend_restored_plans("olga") == []
    found = again(plan)
    assert (found.state, found.suspended_by, found.status_message) == (state, None, None)


def test_plan_that_a_user_had_suspended_keeps_the_name_and_gets_the_message() -> None:
    plan = make_plan({"a": []}, state="ONGOING", suspended_by="bob")
    suspend_restored_plans("olga")
    assert (again(plan).suspended_by, again(plan).status_message) == ("bob", MESSAGE)


def test_repeated_operation_changes_nothing() -> None:
    plan = make_running_plan()
    suspend_restored_plans("olga")
    before = again(plan)
    assert suspend_restored_plans("rosa") == []
    assert (again(plan).suspended_by, again(plan).signals) == (before.suspended_by, before.signals)


def test_history_has_the_signal_to_each_plan() -> None:
    plans = [make_plan({"a": []}, state="PENDING") for _ in range(2)]
    with on_behalf_of(lambda: CallingContext(user="olga")):
        suspend_restored_plans("olga")
    columns = ("object_uuid", "user", "deed", "message", "details")
    entry = ("olga", "action_plan.signal", MESSAGE, {"signal": "SUSPEND"})
    assert list(HistoryEntry.objects.order_by("pk").values_list(*columns)) == [(plan.uuid, *entry) for plan in plans]


@pytest.mark.parametrize("number", [1, 5])
def test_query_count_does_not_depend_on_the_number_of_plans(
    django_assert_num_queries: DjangoAssertNumQueries, number: int
) -> None:
    for _ in range(number):
        make_running_plan()
    # A savepoint and its end, the plans and their running actions, and writes of actions, events, plans and history.
    with django_assert_num_queries(8), on_behalf_of(lambda: CallingContext(user="olga")):
        suspend_restored_plans("olga")


def test_applier_executes_no_action_of_a_restored_plan_before_it_is_resumed() -> None:
    running, waiting = make_running_plan(), make_plan({"c": []}, state="PENDING")
    suspend_restored_plans("olga")
    run_waiting()
    assert (states(running), states(waiting)) == (["SUSPENDED", "PENDING"], ["PENDING"])
    assert action(running, "a").attempt == 1


def test_resumed_plan_recovers_its_interrupted_action_and_succeeds() -> None:
    plan = make_running_plan()
    suspend_restored_plans("olga")
    run_waiting()
    signal_plan(again(plan), Action.Signal.RESUME, "olga")
    run_waiting()
    assert (again(plan).state, states(plan)) == ("SUCCEEDED", ["SUCCEEDED"] * 2)
    assert action(plan, "a").events.filter(event="recover").exists()


def test_resumed_plan_no_longer_has_the_message() -> None:
    plan = make_plan({"a": []}, state="PENDING")
    suspend_restored_plans("olga")
    signal_plan(again(plan), Action.Signal.RESUME, "olga")
    assert again(plan).status_message is None


def test_page_of_a_restored_plan_shows_the_message_in_the_language_of_the_reader(
    client: Client, cloud_admin: User
) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    suspend_restored_plans("olga")
    client.force_login(cloud_admin)
    text = client.get(reverse("plans:detail", args=[plan.uuid]), headers={"accept-language": "de"}).content.decode()
    assert "Nach einer Wiederherstellung angehalten" in text


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_plan_suspended_during_its_claim_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({"a": []}, state="PENDING")
    applier = Applier(InlineExecutor())
    rival = Rival(lambda: suspend_restored_plans("olga"))
    interrupt_before(monkeypatch, ActionPlan, "begin", rival)
    applier.advance()
    rival.result()
    applier.stop()
    assert (again(plan).state, again(plan).status_message) == ("PENDING", MESSAGE)


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_of_simultaneous_operations_one_suspends_a_plan() -> None:
    with Race() as race:
        for _ in range(rounds(20)):
            plan = make_running_plan()
            race.run(lambda: suspend_restored_plans("olga"), lambda: suspend_restored_plans("rosa"))
            assert (again(plan).signals, action(plan, "a").control) == (1, "SUSPEND")
            assert action(plan, "a").events.filter(event="signal_suspend").count() == 1


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_plan_suspended_while_an_applier_claims_it_executes_nothing_after_that() -> None:
    def suspend() -> Any:
        return suspend_restored_plans("olga")

    with Race() as race:
        for _ in range(rounds(20)):
            plan = make_plan({"a": [], "b": ["a"]}, state="PENDING")
            applier = Applier(InlineExecutor())
            race.run(applier.step, suspend)
            begun = states(plan)
            applier.poll_soon()
            applier.step()
            assert (states(plan), again(plan).status_message) == (begun, MESSAGE)
            ActionPlan.objects.all().delete()
            applier.stop()
