"""Operations on a plan that was deleted or purged meanwhile are refused with a message that names the plan."""

from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from actions.models import Action
from plans.applier.foreground import Display, follow_plan
from plans.management.commands import signal_plan as command
from plans.models import ActionPlan
from plans.operations.signals import signal_plan
from tests.api import Caller
from tests.builders import make_plan
from tests.command_runs import Run, run
from watcher_site.refusals import NotFound

__all__ = ["run"]

pytestmark = pytest.mark.django_db


def mark_as_deleted(plan: ActionPlan) -> None:
    ActionPlan.objects.filter(pk=plan.pk).update(deleted_at=timezone.now())


def purge(plan: ActionPlan, *_: Any) -> None:
    ActionPlan.objects.filter(pk=plan.pk).delete()


def choose(plan: ActionPlan) -> None:
    plan.choose_on_failure("stop")


OPERATIONS: dict[str, tuple[str, Callable[[ActionPlan], object]]] = {
    "on_failure": ("RECOMMENDED", choose),
    "start": ("RECOMMENDED", ActionPlan.launch),
    "cancel": ("RECOMMENDED", partial(signal_plan, signal=Action.Signal.CANCEL, by="alice")),
    "cancel_running": ("ONGOING", partial(signal_plan, signal=Action.Signal.CANCEL, by="alice")),
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


@pytest.fixture
def _deleted_after_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delete a plan after it was looked up, immediately before it is started or cancelled."""
    for name in ("launch", "abandon"):
        original = getattr(ActionPlan, name)

        def perform(plan: ActionPlan, *arguments: Any, original: Any = original, **options: Any) -> None:
            mark_as_deleted(plan)
            original(plan, *arguments, **options)

        monkeypatch.setattr(ActionPlan, name, perform)


@pytest.mark.usefixtures("_deleted_after_lookup")
@pytest.mark.parametrize("state", ["PENDING", "CANCELLED"])
def test_api_responds_to_a_deletion_after_the_lookup_as_to_an_earlier_one(api: Caller, state: str) -> None:
    plan = make_plan({"a": []})
    document = [{"op": "replace", "path": "/state", "value": state}]
    late = api.patch(f"/action_plans/{plan.uuid}", document)
    mark_as_deleted(plan)
    early = api.patch(f"/action_plans/{plan.uuid}", document)
    assert (late.status_code, late.content) == (404, early.content)


@pytest.mark.usefixtures("_deleted_after_lookup")
@pytest.mark.parametrize("operation", ["start", "cancel"])
def test_console_says_that_the_plan_was_deleted_after_the_lookup(
    client: Client, cloud_admin: User, operation: str
) -> None:
    client.force_login(cloud_admin)
    plan = make_plan({"a": []})
    page = client.post(reverse(f"plans:{operation}", args=[plan.uuid]), follow=True).content.decode()
    assert f"Cannot {operation} the action plan: it was deleted." in page


@pytest.mark.usefixtures("_deleted_after_lookup")
@pytest.mark.parametrize("operation", ["start", "cancel"])
def test_command_names_a_plan_that_was_deleted_after_the_lookup(run: Run, operation: str) -> None:
    plan = make_plan({"a": []})
    ended = run("plans", operation, plan.uuid, "--yes")
    assert (ended.status, ended.errors) == (2, f"CommandError: ActionPlan {plan.uuid} could not be found\n")


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
