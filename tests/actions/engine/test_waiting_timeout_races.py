"""Races of the timeout of a waiting action with its continuation and with the start of its derived actions."""

from datetime import timedelta

import pytest
from django.utils import timezone

from actions.engine import execution
from actions.engine.timeouts import time_out
from actions.models import Action
from plans.applier.timeouts import fail_overdue_actions
from plans.executors.leases import PlanLease
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.races import Race, rounds
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = rounds(20)


def plan_with_an_overdue_action(applier: Service) -> ActionPlan:
    """Return a plan whose action a has waited longer than its timeout for its derived action x."""
    plan = make_plan({"x": [], "a": ["x"]}, state="ONGOING", applier=applier)
    a = action(plan, "a")
    began = timezone.now() - timedelta(hours=2)
    late = {"has_derived": True, "attempt": 1, "start_time": began, "waits_until": began}
    Action.objects.filter(pk=a.pk).update(**late)
    plan.actions.exclude(pk=a.pk).update(derived_from=a)
    return plan


def one_of(plan: ActionPlan, name: str) -> Action:
    found: Action = plan.actions.select_related("action_plan").get(input_parameters__message=name)
    return found


def test_continuation_and_timeout_of_an_action_exclude_each_other() -> None:
    applier = Service.register(Service.APPLIER, "here")
    with Race() as race:
        for _ in range(ROUNDS):
            plan = plan_with_an_overdue_action(applier)
            plan.actions.filter(input_parameters__message="x").update(state="SUCCEEDED")
            a, same, lease = one_of(plan, "a"), one_of(plan, "a"), PlanLease.of(plan, applier)
            went_on, was_late = race.run(
                lambda a=a, lease=lease: execution.execute(a, lease),
                lambda same=same, lease=lease: time_out(same, lease),
            )
            assert went_on != was_late
            assert action(plan, "a").state == ("SUCCEEDED" if went_on else "CANCELLING")


def test_derived_action_is_either_executed_or_cancelled() -> None:
    applier = Service.register(Service.APPLIER, "here")
    with Race() as race:
        for _ in range(ROUNDS):
            plan = plan_with_an_overdue_action(applier)
            x, lease = one_of(plan, "x"), PlanLease.of(plan, applier)
            executed, _ = race.run(
                lambda x=x, lease=lease: execution.execute(x, lease), lambda: fail_overdue_actions(applier) == 1
            )
            x = action(plan, "x")
            assert (x.state, x.attempt) == (("SUCCEEDED", 1) if executed else ("CANCELLED", 0))
            a = action(plan, "a")
            assert a.state == "CANCELLING" or (executed and a.state == "PENDING")
            plan.actions.update(state="SUCCEEDED")


def test_restart_timeouts_gives_each_waiting_action_its_own_timeout() -> None:
    plan = plan_with_an_overdue_action(Service.register(Service.APPLIER, "here"))
    other = action(plan_with_an_overdue_action(plan.applier or Service()), "a")
    Action.objects.filter(pk=other.pk).update(timeout=7, action_plan=plan)
    now = timezone.now()
    assert plan.actions.restart_timeouts(now) == 2
    given = {one.seconds_allowed: one.waits_until for one in plan.actions.exclude(waits_until=None)}
    assert given == {seconds: now + timedelta(seconds=seconds) for seconds in (7, 3600)}
