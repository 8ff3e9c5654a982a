"""An action's time is over in the moment in which it goes on, or what it derived begins: the database decides."""

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
from tests.plans.test_races import Race
from watcher_site.models import Service

pytestmark = [pytest.mark.slow, pytest.mark.postgresql, pytest.mark.django_db(transaction=True)]
ROUNDS = 20


def waiting(applier: Service) -> ActionPlan:
    """Make a plan whose action a has waited for too long for x, which it derived."""
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


def test_what_goes_on_is_not_late_and_what_is_late_does_not_go_on() -> None:
    applier = Service.register(Service.APPLIER, "here")
    with Race() as race:
        for _ in range(ROUNDS):
            plan = waiting(applier)
            plan.actions.filter(input_parameters__message="x").update(state="SUCCEEDED")
            a, same, lease = one_of(plan, "a"), one_of(plan, "a"), PlanLease.of(plan, applier)
            went_on, was_late = race.run(
                lambda a=a, lease=lease: execution.execute(a, lease),
                lambda same=same, lease=lease: time_out(same, lease),
            )
            assert went_on != was_late
            assert action(plan, "a").state == ("SUCCEEDED" if went_on else "CANCELLING")


def test_what_was_derived_is_either_executed_or_cancelled() -> None:
    applier = Service.register(Service.APPLIER, "here")
    with Race() as race:
        for _ in range(ROUNDS):
            plan = waiting(applier)
            x, lease = one_of(plan, "x"), PlanLease.of(plan, applier)
            executed, _ = race.run(
                lambda x=x, lease=lease: execution.execute(x, lease), lambda: fail_overdue_actions(applier) == 1
            )
            x = action(plan, "x")
            assert (x.state, x.attempt) == (("SUCCEEDED", 1) if executed else ("CANCELLED", 0))
            a = action(plan, "a")
            assert a.state == "CANCELLING" or (executed and a.state == "PENDING")
            plan.actions.update(state="SUCCEEDED")


def test_all_that_waits_in_a_plan_is_given_as_much_time_as_each_may_take() -> None:
    plan = waiting(Service.register(Service.APPLIER, "here"))
    other = action(waiting(plan.applier or Service()), "a")
    Action.objects.filter(pk=other.pk).update(timeout=7, action_plan=plan)
    now = timezone.now()
    assert plan.actions.restart_timeouts(now) == 2
    given = {one.seconds_allowed: one.waits_until for one in plan.actions.exclude(waits_until=None)}
    assert given == {seconds: now + timedelta(seconds=seconds) for seconds in (7, 3600)}
