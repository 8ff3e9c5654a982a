"""The picture on a plan's page: its graph, or the counts of its layers where the actions are too many to draw."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache as remembered
from typing import Any

from django.core.cache import cache

from actions.console.descriptions import in_order
from actions.models import Action, ActionParent
from actions.models.naming import resource
from plans.console.graph import SHOWN_LAYERS, Edge, Node, Picture, draw, layers, parents_of
from plans.models import ActionPlan

DRAWN_ACTIONS = 300
LABEL_LENGTH = 18
# More arrows into what an action derived tell nothing more.
MOST_STARTS = 50


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
        found = count_layers(plan)
        return {"layers": found[:SHOWN_LAYERS], "hidden_layers": max(len(found) - SHOWN_LAYERS, 0)}
    actions = {action.pk: action for action in plan.actions.present().order_by("pk")}
    edges = [edge for edge in edges_of(plan) if set(edge) <= actions.keys()]
    picture = draw(list(actions), in_time(edges, {key: action.derived_from_id for key, action in actions.items()}))
    return {"picture": picture, "boxes": boxes(picture, actions)}


def boxes(picture: Picture, actions: dict[int, Action]) -> list[Box]:
    return [Box(actions[node.key], node) for band in picture.bands for node in band.nodes]


def count_layers(plan: ActionPlan) -> list[Layer]:
    rows = list(plan.actions.present().values_list("pk", "state", "derived_from", "has_derived"))
    states = {key: state for key, state, *_ in rows}

    def find_places() -> dict[int, int]:
        return layers(states, in_time(edges_of(plan), {key: derived_from for key, _, derived_from, _ in rows}))

    # Dependencies change only with the plan itself, or when an action derives others: only the states are read anew.
    waiting = sum(has_derived for *_, has_derived in rows)
    version = f"{len(states)}-{waiting}-{plan.updated_at and plan.updated_at.timestamp()}"
    places = cache.get_or_set(f"layers-of-plan-{plan.uuid}-{version}", find_places, 3600) or {}
    counts: dict[int, Counter[str]] = {}
    for key, state in states.items():
        counts.setdefault(places.get(key, 0), Counter())[state] += 1
    return [Layer(number + 1, in_order(counts[number])) for number in sorted(counts)]


def edges_of(plan: ActionPlan) -> list[tuple[int, int]]:
    links = ActionParent.objects.filter(child__action_plan=plan)
    return list(links.values_list("parent_id", "child_id"))


def in_time(edges: Sequence[Edge], derived_from: Mapping[int, int | None]) -> list[Edge]:
    """Add what came before the actions that another one derived: those that this one had waited for."""
    parents = parents_of(edges)

    @remembered
    def before(key: int) -> list[int]:
        own = sorted(parent for parent in parents.get(key, ()) if derived_from.get(parent) != key)
        origin = derived_from.get(key)
        return own[-MOST_STARTS:] if own or origin is None else before(origin)

    derived = [key for key, origin in derived_from.items() if origin is not None]
    return list(dict.fromkeys([*edges, *((parent, key) for key in derived for parent in before(key))]))


def clip(text: str) -> str:
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 1]}…"
