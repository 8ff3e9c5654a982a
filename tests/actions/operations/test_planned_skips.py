"""Skipping and restoring planned derived actions, alone or with the deriving action."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.models import Action
from actions.operations.skipping import change_reason, restore_action, restore_actions, skip_action, skip_actions
from plans.models import ActionPlan
from tests.actions.engine.derived.test_derived_actions import reload, states
from tests.actions.engine.derived.test_planned_actions import WAS_SKIPPED, message
from tests.api import Caller, fault
from tests.builders import action
from tests.plans.applier.test_commits import counted
from tests.plans.deriving import plan_to_derive
from watcher_site.refusals import Conflict

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan() -> ActionPlan:
    """Return a plan with the planned actions x and y (after x) of a, and deep of x; b depends on a."""
    return plan_to_derive({"a": [], "b": ["a"]}, {"a": {"x": [], "y": ["x"]}, "x": {"deep": []}}, state="RECOMMENDED")


@pytest.fixture
def api(cloud_admin: User) -> Caller:
    return Caller(cloud_admin, "1.12")


@pytest.fixture
def administrator(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def skip(plan: ActionPlan, *names: str) -> None:
    for name in names:
        skip_action(action(plan, name).uuid, "alice", f"no {name}")


def skipped(plan: ActionPlan) -> set[str]:
    return {name for name, state in states(plan).items() if state == "SKIPPED"}


def patch(api: Caller, one: Action, state: str) -> Any:
    return api.patch(f"/actions/{one.uuid}", [{"op": "replace", "path": "/state", "value": state}])


def send(api: Caller, plan: ActionPlan, verb: str, *names: str) -> Any:
    uuids = [str(action(plan, name).uuid) for name in names]
    return api.post(f"/action_plans/{plan.uuid}/{verb}", {"actions": uuids})


def test_planned_action_is_skipped_alone(plan: ActionPlan) -> None:
    skip(plan, "y")
    assert skipped(plan) == {"y"}


def test_planned_actions_are_skipped_with_the_deriving_action(plan: ActionPlan) -> None:
    skip(plan, "a")
    assert skipped(plan) == {"a", "x", "y", "deep"}
    assert {message(plan, name) for name in ("x", "y", "deep")} == {WAS_SKIPPED}


def test_only_the_explicitly_skipped_action_records_the_user(plan: ActionPlan) -> None:
    skip(plan, "a")
    assert set(plan.actions.exclude(skipped_by=None).values_list("uuid", flat=True)) == {action(plan, "a").uuid}


def test_planned_action_skipped_before_keeps_its_reason(plan: ActionPlan) -> None:
    skip(plan, "y", "a")
    assert message(plan, "y") == "Action skipped by user. Reason: no y"


def test_reason_of_an_implicitly_skipped_action_can_be_changed(plan: ActionPlan) -> None:
    skip(plan, "a")
    change_reason(action(plan, "x").uuid, "too many")
    assert message(plan, "x") == f"{WAS_SKIPPED} Note: too many"


def test_implicitly_skipped_actions_are_restored_with_the_deriving_action(plan: ActionPlan) -> None:
    skip(plan, "a")
    change_reason(action(plan, "x").uuid, "too many")
    restore_action(action(plan, "a").uuid)
    assert not skipped(plan)
    assert set(plan.actions.values_list("status_message", "reason")) == {(None, "")}


def test_explicitly_skipped_planned_action_stays_skipped_with_its_own_planned_actions(plan: ActionPlan) -> None:
    skip(plan, "x", "a")
    restore_action(action(plan, "a").uuid)
    assert skipped(plan) == {"x", "deep"}


def test_implicitly_skipped_action_cannot_be_restored_alone(plan: ActionPlan, api: Caller) -> None:
    skip(plan, "a")
    answer = patch(api, action(plan, "x"), "PENDING")
    x, a = action(plan, "x"), action(plan, "a")
    assert (answer.status_code, fault(answer)) == (
        409,
        f"Action {x.uuid} can not be restored alone: action {a.uuid}, which it is derived from, is skipped."
        " Restore that one.",
    )


def test_planned_action_cannot_be_restored_while_the_deriving_action_is_skipped(plan: ActionPlan, api: Caller) -> None:
    skip(plan, "y", "a")
    assert patch(api, action(plan, "y"), "PENDING").status_code == 409
    patch(api, action(plan, "a"), "PENDING")
    assert patch(api, action(plan, "y"), "PENDING").json()["state"] == "PENDING"
    assert not skipped(plan)


def test_restoring_is_refused_in_a_running_plan(plan: ActionPlan, api: Caller) -> None:
    skip(plan, "a")
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING")
    assert "State update not allowed" in fault(patch(api, action(plan, "a"), "PENDING"))
    assert "skipped automatically" in fault(patch(api, action(plan, "x"), "PENDING"))


def test_bulk_skip_includes_the_planned_actions_of_each_action(plan: ActionPlan, api: Caller) -> None:
    assert send(api, plan, "skip", "b", "x").status_code == 200
    assert skipped(plan) == {"b", "x", "deep"}
    assert message(plan, "deep") == WAS_SKIPPED


def test_bulk_skip_records_listed_planned_actions_as_skipped_by_the_user(plan: ActionPlan, api: Caller) -> None:
    send(api, plan, "skip", "a", "x")
    assert skipped(plan) == {"a", "x", "y", "deep"}
    assert (message(plan, "x"), message(plan, "y")) == ("Action skipped by user.", WAS_SKIPPED)


@pytest.mark.parametrize("names", [("a", "x"), ("x", "a"), ("a", "x", "y", "deep")])
def test_bulk_restore_accepts_planned_actions_with_their_deriving_action(
    plan: ActionPlan, api: Caller, names: list[str]
) -> None:
    skip(plan, "a")
    assert send(api, plan, "restore", *names).status_code == 200
    assert not skipped(plan)


def test_bulk_restore_restores_all_explicitly_skipped_actions(plan: ActionPlan, api: Caller) -> None:
    skip(plan, "deep", "y", "a")
    assert send(api, plan, "restore", "deep", "y", "a").status_code == 200
    assert not skipped(plan)


@pytest.mark.parametrize("names", [("x",), ("b", "x"), ("b", "y")])
def test_bulk_restore_without_the_deriving_action_is_refused(plan: ActionPlan, api: Caller, names: list[str]) -> None:
    skip(plan, "b", "y", "a")
    answer = send(api, plan, "restore", *names)
    assert (answer.status_code, skipped(plan)) == (409, {"a", "b", "x", "y", "deep"})
    assert "can not be restored alone" in fault(answer)


def test_statement_count_of_a_skip_does_not_depend_on_the_number_of_planned_actions() -> None:
    costs = []
    for size in (10, 100):
        plan = plan_to_derive({"a": []}, {"a": {f"x{number}": [] for number in range(size)}})
        with counted() as statements:
            assert skip_actions(plan, [action(plan, "a").uuid], "alice") == size + 1
            assert restore_actions(plan, [action(plan, "a").uuid]) == size + 1
        costs.append(len(statements))
    assert costs[0] == costs[1]


def test_cancelled_planned_action_is_neither_skipped_nor_restored(plan: ActionPlan) -> None:
    plan.actions.filter(input_parameters__message="y").update(state="CANCELLED")
    skip(plan, "a")
    restore_action(action(plan, "a").uuid)
    assert states(plan)["y"] == "CANCELLED"


def test_skip_form_announces_the_planned_actions(plan: ActionPlan, administrator: Client) -> None:
    for name, number in (("a", 1), ("y", 0)):
        answer = administrator.post(reverse("plans:skip", args=[plan.uuid]), {"only": str(action(plan, name).uuid)})
        assert answer.content.decode().count("with the actions that it is to derive") == number


def test_console_shows_the_number_of_skipped_and_restored_actions(plan: ActionPlan, administrator: Client) -> None:
    a = action(plan, "a")
    form = {"only": str(a.uuid), "confirmed": "1", "reason": ""}
    answer = administrator.post(reverse("plans:skip", args=[plan.uuid]), form, follow=True)
    assert "4 actions skipped." in answer.content.decode()
    answer = administrator.post(reverse("plans:restore", args=[plan.uuid]), {"only": str(a.uuid)}, follow=True)
    assert "4 actions restored." in answer.content.decode()


def test_console_offers_a_restore_only_for_the_deriving_action(plan: ActionPlan, administrator: Client) -> None:
    skip(plan, "y", "a")
    text = administrator.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert text.count(">Restore</button>") == 1
    assert f'id="restore-{action(plan, "a").uuid}"' in text


@pytest.mark.parametrize("page", ["actions:restore", "plans:restore"])
def test_refused_restore_in_the_console_names_the_deriving_action(
    plan: ActionPlan, administrator: Client, page: str
) -> None:
    skip(plan, "a")
    x = action(plan, "x")
    of = x if page == "actions:restore" else plan
    answer = administrator.post(reverse(page, args=[of.uuid]), {"only": str(x.uuid)}, follow=True)
    assert "is derived from nop a, which is skipped. Restore that action." in answer.content.decode()


def test_planned_actions_of_a_running_plan_cannot_be_skipped(plan: ActionPlan) -> None:
    reload(plan).launch()
    skip(plan, "x")
    ActionPlan.objects.filter(pk=plan.pk).update(state="ONGOING")
    with pytest.raises(Conflict, match="State update not allowed for actionplan state: ONGOING"):
        skip(plan, "y")


def test_api_shows_cause_status_and_dependencies_of_a_planned_action(plan: ActionPlan, api: Caller) -> None:
    x, a = api.get(f"/actions/{action(plan, 'x').uuid}").json(), action(plan, "a").uuid
    assert (x["cause"], x["status"], x["depends_on"]) == ("Derived Action", "INIT", [str(a)])
