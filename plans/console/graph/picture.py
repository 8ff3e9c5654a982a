"""A plan's graph as a picture: which action waits for which, from left to right; counts by layer if it is too large.

The drawing is pure geometry: rows in, coordinates out. Layers are the longest paths from the start, so that every edge
goes right. A layer is a band, as many columns wide as its actions need. Edges that many actions share are drawn once,
through a common point, or from band to band where a whole layer waits for the whole layer before it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from statistics import mean
from typing import Any

from actions.models import Action
from actions.models.naming import resource
from plans.console.graph.layers import Edge, Layer, count_layers, edges_of, in_time, layers, parents_of
from plans.models import ActionPlan

DRAWN_ACTIONS = 300
LABEL_LENGTH = 18
Point = tuple[float, float]
ROWS = 6
WIDTH, HEIGHT = 170, 58
ROW_GAP, COLUMN_GAP, BAND_GAP = 10, 12, 34
PADDING, TITLE = 9, 26
SHOWN_LAYERS = 100


@dataclass
class Node:
    """One action's box, by its top left corner."""

    key: int
    x: float = 0
    y: float = 0
    width = WIDTH
    height = HEIGHT

    @property
    def left(self) -> Point:
        return self.x, self.y + HEIGHT / 2

    @property
    def right(self) -> Point:
        return self.x + WIDTH, self.y + HEIGHT / 2


@dataclass
class Band:
    """One layer: the actions that are equally far from the start."""

    number: int
    nodes: list[Node]
    x: float = 0
    width: float = 0
    height: float = 0

    @property
    def left(self) -> Point:
        return self.x, TITLE + self.height / 2

    @property
    def right(self) -> Point:
        return self.x + self.width, TITLE + self.height / 2


@dataclass
class Picture:
    """All that is drawn, in pixels."""

    bands: list[Band]
    lines: list[str] = field(default_factory=list)
    arrows: list[str] = field(default_factory=list)

    @property
    def width(self) -> float:
        return self.bands[-1].right[0] + 2 if self.bands else 0

    @property
    def height(self) -> float:
        return TITLE + max((band.height for band in self.bands), default=0) + 2


def draw(keys: Sequence[int], edges: Sequence[Edge]) -> Picture:
    """Place every action, and every edge that does not follow from others."""
    layer = layers(keys, edges)
    edges = essential(layer, edges)
    picture = Picture(place(keys, layer, parents_of(edges)))
    for parents, children in shared(edges).items():
        connect(picture, layer, parents, children)
    return picture


def essential(layer: Mapping[int, int], edges: Sequence[Edge]) -> list[Edge]:
    """Remove edges that others imply: if c depends on b, and b on a, an edge from a to c is redundant."""
    parents = parents_of(edges)
    ancestors: dict[int, int] = {}
    implied: dict[int, int] = {}
    bit = {key: 1 << index for index, key in enumerate(layer)}
    for key in sorted(layer, key=layer.__getitem__):
        own = parents.get(key, set())
        implied[key] = reduce(or_, (ancestors[parent] for parent in own), 0)
        ancestors[key] = reduce(or_, (bit[parent] for parent in own), implied[key])
    return [(parent, child) for parent, child in edges if not implied[child] & bit[parent]]


def shared(edges: Iterable[Edge]) -> dict[frozenset[int], list[int]]:
    """Return the children by the parents that they wait for."""
    groups: dict[frozenset[int], list[int]] = defaultdict(list)
    for child, parents in parents_of(edges).items():
        groups[frozenset(parents)].append(child)
    return groups


def place(keys: Sequence[int], layer: Mapping[int, int], parents: Mapping[int, set[int]]) -> list[Band]:
    """Put the layers beside each other, and each action near the middle of its parents."""
    members: dict[int, list[int]] = defaultdict(list)
    for key in keys:
        members[layer[key]].append(key)
    position: dict[int, float] = {}
    bands, x = [], 1.0
    for number in sorted(members):
        ordered = sorted(
            members[number], key=lambda key: mean([position[parent] for parent in parents.get(key, ())] or [0])
        )
        position.update((key, index / len(ordered)) for index, key in enumerate(ordered))
        bands.append(band := make_band(number, ordered, x))
        x = band.right[0] + BAND_GAP
    return centred(bands)


def make_band(number: int, keys: Sequence[int], x: float) -> Band:
    columns = -(-len(keys) // ROWS)
    rows = -(-len(keys) // columns)
    nodes = [
        Node(
            key,
            x + PADDING + (index // rows) * (WIDTH + COLUMN_GAP),
            TITLE + PADDING + (index % rows) * (HEIGHT + ROW_GAP),
        )
        for index, key in enumerate(keys)
    ]
    width = 2 * PADDING + columns * (WIDTH + COLUMN_GAP) - COLUMN_GAP
    return Band(number + 1, nodes, x, width, 2 * PADDING + rows * (HEIGHT + ROW_GAP) - ROW_GAP)


def centred(bands: list[Band]) -> list[Band]:
    """Make all bands as high as the highest, with their actions in the middle."""
    highest = max((band.height for band in bands), default=0)
    for band in bands:
        for node in band.nodes:
            node.y += (highest - band.height) / 2
        band.height = highest
    return bands


def connect(picture: Picture, layer: Mapping[int, int], parents: frozenset[int], children: list[int]) -> None:
    starts = anchors(picture.bands, layer, parents, "right")
    ends = anchors(picture.bands, layer, children, "left")
    if len(starts) > 1 and len(ends) > 1:
        middle = min(x for x, _ in ends) - BAND_GAP / 2, mean(y for _, y in starts + ends)
        picture.lines += [curve(start, middle) for start in starts]
        starts = [middle]
    picture.arrows += [curve(start, end) for start in starts for end in ends]


def anchors(bands: list[Band], layer: Mapping[int, int], keys: Iterable[int], side: str) -> list[Point]:
    """Return where edges of these actions begin or end: at their band, where they are all of it."""
    by_layer: dict[int, set[int]] = defaultdict(set)
    for key in keys:
        by_layer[layer[key]].add(key)
    points: list[Point] = []
    for number, members in by_layer.items():
        band = bands[number]
        if len(members) == len(band.nodes) > 1:
            points.append(getattr(band, side))
        else:
            points += [getattr(node, side) for node in band.nodes if node.key in members]
    return points


def curve(start: Point, end: Point) -> str:
    (x1, y1), (x2, y2) = start, end
    bend = max((x2 - x1) / 2, 8)
    return f"M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2:g},{y2:g}"


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


def picture_of(plan: ActionPlan, total: int, first_layer: str = "") -> dict[str, Any]:
    """Return what the template draws, in two queries; ``first_layer`` is for a plan that is too large for that."""
    if total > DRAWN_ACTIONS:
        return layers_from(count_layers(plan), first_layer)
    actions = {action.pk: action for action in plan.actions.present().order_by("pk")}
    edges = [edge for edge in edges_of(plan) if set(edge) <= actions.keys()]
    picture = draw(list(actions), in_time(edges, {key: action.derived_from_id for key, action in actions.items()}))
    return {"picture": picture, "boxes": boxes(picture, actions)}


def layers_from(found: list[Layer], first: str) -> dict[str, Any]:
    """Return the layers to show, from a number on, or from the first if a person gave none that exists."""
    begin = int(first) - 1 if re.fullmatch(r"[1-9]\d{0,6}", first) else 0
    shown = found[begin : begin + SHOWN_LAYERS] or found[:SHOWN_LAYERS]
    return {
        "layers": shown,
        "largest_layer": max(layer.total for layer in found),
        "layer_count": len(found),
        "earlier_layers": max(shown[0].number - SHOWN_LAYERS, 1) if shown[0].number > 1 else None,
        "later_layers": shown[-1].number + 1 if shown[-1].number < len(found) else None,
    }


def boxes(picture: Picture, actions: dict[int, Action]) -> list[Box]:
    return [Box(actions[node.key], node) for band in picture.bands for node in band.nodes]


def clip(text: str) -> str:
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 1]}…"
