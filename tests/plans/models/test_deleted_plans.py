"""Operations on a plan that was deleted or purged meanwhile are refused with a message that names the plan."""

from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from actions.models import Action
from plans.applier.foreground import Display, follow_plan
from plans.management.commands import signal_plan as command
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from tests.builders import make_plan
from watcher_site.refusals import NotFound

pytestmark = pytest.mark.django_db


def mark_as_deleted(plan: ActionPlan) -> None:
    ActionPlan.objects.filter(pk=plan.pk).update(deleted_at=timezone.now())


def purge(plan: ActionPlan, *_: Any) -> None:
    ActionPlan.objects.filter(pk=plan.pk).delete()


def choose(plan: ActionPlan) -> None:
    plan.choose_on_failure("stop")


OPERATIONS: dict[str, tuple[str, Callable[[ActionPlan], object]]] = {
    "on_failure": ("RECOMMENDED", choose),
    "suspend": ("PENDING", partial(signal_plan, signal=Action.Signal.SUSPEND, by="alice")),
    "resume": ("PENDING", partial(signal_plan, signal=Action.Signal.RESUME, by="alice")),
}


@pytest.mark.parametrize("remove", [mark_as_deleted, purge])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_refusal_of_a_deleted_plan_names_it(operation: str, remove: Callable[[ActionPlan], None]) -> None:
    state, perform = OPERATIONS[operation]
    plan = make_plan(state=state)
    remove(plan)
    with pytest.raises(NotFound, match=f"^ActionPlan {plan.uuid} could not be found$"):
        perform(plan)


def test_display_of_a_purged_plan_names_it() -> None:
    plan = make_plan(state="ONGOING")
    purge(plan)
    with pytest.raises(NotFound, match=f"^ActionPlan {plan.uuid} could not be found$"):
        follow_plan(plan, Display(StringIO()))


def test_signal_to_a_plan_that_is_purged_at_the_same_time_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(state="RECOMMENDED")
    monkeypatch.setattr(command, "signal_plan", purge)
    with pytest.raises(CommandError, match=f"ActionPlan {plan.uuid} could not be found"):
        call_command("signal_plan", str(plan.uuid), "CANCEL")
