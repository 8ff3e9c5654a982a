"""A refused or interrupted action is retried while other actions of its plan run."""

from collections.abc import Callable

import pytest
from django.db import OperationalError
from pytest_django import Settings

from actions.models import Action
from plans.applier.applier import Applier
from plans.executors import Job, Report
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.applier.test_applier import states
from tests.plans.inline import InlineExecutor

pytestmark = pytest.mark.django_db
Refusal = Callable[[Job], Report]


class RefusingExecutor(InlineExecutor):
    """Executor that never ends ``long``, and refuses or interrupts ``x`` the first time."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(slots=2)
        self.refusals = [refusal]
        self.begun: list[str] = []

    def submit(self, job: Job) -> None:
        name = job.action.input_parameters["message"]
        self.begun.append(name)
        if name == "x" and self.refusals:
            self.reports.append(self.refusals.pop()(job))
        elif name != "long":
            super().submit(job)


def refuse(job: Job) -> Report:
    return Report(job, done=False)


def interrupt(job: Job) -> Report:
    return Report(job, done=False, error=OperationalError("gone"))


def interrupt_execution(job: Job) -> Report:
    Action.objects.filter(pk=job.action.pk).update(state="ONGOING", attempt=1)
    return Report(job, done=False, error=OperationalError("gone"))


def run(refusal: Refusal, steps: int = 8) -> tuple[ActionPlan, RefusingExecutor, Applier]:
    plan = make_plan({"long": [], "x": [], "y": ["x"]}, state="PENDING")
    executor = RefusingExecutor(refusal)
    applier = Applier(executor)
    for _ in range(steps):
        applier.advance()
        applier.collect(0)
    return plan, executor, applier


@pytest.mark.parametrize("refusal", [refuse, interrupt, interrupt_execution])
def test_refused_action_is_retried_while_another_action_runs(settings: Settings, refusal: Refusal) -> None:
    settings.POLL_INTERVAL = 0
    plan, _, _ = run(refusal)
    assert states(plan) == {"long": "PENDING", "x": "SUCCEEDED", "y": "SUCCEEDED"}


def test_running_action_is_not_submitted_again(settings: Settings) -> None:
    settings.POLL_INTERVAL = 0
    _, executor, _ = run(refuse)
    assert executor.begun == ["long", "x", "x", "y"]


def test_refused_action_is_not_retried_immediately(settings: Settings) -> None:
    settings.POLL_INTERVAL = 60
    _, executor, _ = run(refuse)
    assert executor.begun == ["long", "x"]


def test_refused_action_is_not_retried_after_the_plan_was_lost(settings: Settings) -> None:
    settings.POLL_INTERVAL = 0

    def lose(job: Job) -> Report:
        Action.objects.filter(pk=job.action.pk).update(state="ONGOING", attempt=1)
        ActionPlan.objects.filter(pk=job.lease.plan).update(applier=None)
        return Report(job, done=False)

    plan = make_plan({"long": [], "x": []}, state="PENDING")
    executor = RefusingExecutor(lose)
    applier = Applier(executor)
    applier.advance()
    applier.lose(applier.runs[plan.pk])
    for _ in range(3):
        applier.collect(0)
        applier.submit()
    assert executor.begun == ["long", "x"]
    assert action(plan, "x").state == "ONGOING"
