"""The picture on a plan's page: its graph, or the counts of its layers where the actions are too many to draw."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.core.cache import cache

from actions.descriptions import in_order
from actions.models import Action, ActionParent
from actions.naming import resource
from plans.graph import SHOWN_LAYERS, Node, Picture, draw, layers
from plans.models import ActionPlan

DRAWN_ACTIONS = 300
LABEL_LENGTH = 18


@dataclass
class Box:
    """An action in the picture."""

    action: Action
    place: Node

    @property
    def type_label(self) -> str:
        return clip(self.action.action_type)

    @property
    def resource_label(self) -> str:
        return clip(self.resource)

    @property
    def resource(self) -> str:
        return resource(self.action.input_parameters)


@dataclass
class Layer:
    """A row of the overview of a large plan."""

    number: int
    counts: dict[str, int]


def picture_of(plan: ActionPlan, total: int) -> dict[str, Any]:
    """Return what the template draws, in two queries."""
    if total > DRAWN_ACTIONS:
        found = summary(plan)
        return {"layers": found[:SHOWN_LAYERS], "hidden_layers": max(len(found) - SHOWN_LAYERS, 0)}
    actions = {action.pk: action for action in plan.actions.present().order_by("pk")}
    picture = draw(list(actions), [edge for edge in edges_of(plan) if set(edge) <= actions.keys()])
    return {"picture": picture, "boxes": boxes(picture, actions)}


def boxes(picture: Picture, actions: dict[int, Action]) -> list[Box]:
    return [Box(actions[node.key], node) for band in picture.bands for node in band.nodes]


def summary(plan: ActionPlan) -> list[Layer]:
    states = dict(plan.actions.present().values_list("pk", "state"))
    # What waits for what never changes: only the states are asked for anew.
    places = cache.get_or_set(f"layers-of-plan-{plan.uuid}", lambda: layers(states, edges_of(plan)), 3600) or {}
    counts: dict[int, Counter[str]] = {}
    for key, state in states.items():
        counts.setdefault(places.get(key, 0), Counter())[state] += 1
    return [Layer(number + 1, in_order(counts[number])) for number in sorted(counts)]


def edges_of(plan: ActionPlan) -> list[tuple[int, int]]:
    links = ActionParent.objects.filter(child__action_plan=plan)
    return list(links.values_list("parent_id", "child_id"))


def clip(text: str) -> str:
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 1]}…"
