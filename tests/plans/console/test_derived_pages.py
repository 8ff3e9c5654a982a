"""Derived actions in the console."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from actions.graph.proposals import write_actions
from actions.models import Action
from actions.operations.dependencies import change_dependencies
from actions.operations.skipping import skip_action
from plans.console.graph.picture import picture_of
from plans.models import ActionPlan
from tests.actions.engine.derived.test_derived_cancel import waiting_plan
from tests.actions.engine.derived.test_planned_actions import advance
from tests.builders import action, make_plan
from tests.plans.deriving import behave, plan_to_derive, proposed, waits

pytestmark = pytest.mark.django_db


@pytest.fixture
def reading(client: Client, reader: User) -> Client:
    client.force_login(reader)
    return client


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> ActionPlan:
    """A plan whose action a derived x and y, of which y waits for x; b waits for a."""
    return waiting_plan(monkeypatch)


def text(client: Client, one: Action) -> str:
    return " ".join(client.get(reverse("actions:detail", args=[one.uuid])).content.decode().split())


def test_derived_action_shows_the_action_that_derived_it(reading: Client, plan: ActionPlan) -> None:
    found = text(reading, action(plan, "x"))
    assert "Derived from" in found
    assert reverse("actions:detail", args=[action(plan, "a").uuid]) in found


def test_waiting_action_shows_the_actions_that_it_derived(reading: Client, plan: ActionPlan) -> None:
    found = text(reading, action(plan, "a"))
    assert "Action waits for 2 actions that it derived." in found
    assert "Derived from" not in found
    assert all(reverse("actions:detail", args=[action(plan, name).uuid]) in found for name in "xy")


def test_plan_table_marks_derived_actions(reading: Client, plan: ActionPlan) -> None:
    response = reading.get(reverse("plans:detail", args=[plan.uuid]))
    assert response.content.decode().count(">derived</span>") == 2


def test_action_that_failed_with_another_shows_that_it_did_not_begin(reading: Client, plan: ActionPlan) -> None:
    Action.objects.filter(pk=action(plan, "b").pk).update(state="FAILED")
    assert "The action failed before it began." in text(reading, action(plan, "b"))


def places(picture: dict[str, Any]) -> dict[str, int]:
    return {
        box.action.input_parameters["message"]: band.number
        for band in picture["picture"].bands
        for box in picture["boxes"]
        if box.place in band.nodes
    }


def test_graph_shows_derived_actions_before_the_action_that_waits_for_them(plan: ActionPlan) -> None:
    assert places(picture_of(plan, 4)) == {"x": 1, "y": 2, "a": 3, "b": 4}


def test_layers_of_a_large_plan_are_updated_with_derived_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plans.console.graph.picture.DRAWN_ACTIONS", 1)
    plan = make_plan({"a": [], "b": ["a"]}, state="ONGOING")
    assert len(picture_of(plan, 2)["layers"]) == 2
    write_actions(plan.pk, proposed({"x": [], "y": ["x"]}), derived_from=action(plan, "a"))
    assert len(picture_of(plan, 4)["layers"]) == 4


def test_layers_of_a_large_plan_are_updated_with_changed_dependencies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plans.console.graph.picture.DRAWN_ACTIONS", 1)
    plan = make_plan({"a": [], "b": ["a"]})
    assert len(picture_of(plan, 2)["layers"]) == 2
    change_dependencies(action(plan, "b").uuid, lambda _: [])
    assert len(picture_of(ActionPlan.objects.get(pk=plan.pk), 2)["layers"]) == 1


def test_layers_of_a_large_plan_move_planned_actions_before_their_parent_when_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("plans.console.graph.picture.DRAWN_ACTIONS", 1)
    behave(monkeypatch, a=waits)
    plan = plan_to_derive({"a": []}, {"a": {"x": [], "y": ["x"]}})
    assert [layer.counts for layer in picture_of(plan, 3)["layers"]] == [{"PENDING": 1}] * 3
    skip_action(action(plan, "x").uuid, "alice")
    advance(plan)
    shown = picture_of(ActionPlan.objects.get(pk=plan.pk), 3)["layers"]
    assert [layer.counts for layer in shown] == [{"SKIPPED": 1}, {"PENDING": 1}, {"PENDING": 1}]


def test_graph_shows_planned_actions_after_the_action_that_will_derive_them() -> None:
    plan = plan_to_derive({"a": [], "b": ["a"]}, {"a": {"x": [], "y": ["x"]}})
    assert places(picture_of(plan, 4)) == {"a": 1, "b": 2, "x": 2, "y": 3}
