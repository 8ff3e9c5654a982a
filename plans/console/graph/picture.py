"""The picture of the graph of a plan, with edges from left to right, or counts by layer if the plan is too large.

`draw_picture` is a pure function from keys and edges to coordinates. An action is in the layer of the longest path to
it, so that every edge leads right. A layer is a band with as many columns as its actions need. Edges between the same
parents and children are drawn once, through a common point, or from band to band if they connect whole layers.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise, starmap
from operator import or_
from statistics import fmean
from typing import Any

from actions.models.naming import resource
from plans.console.graph.layers import (
    Edge,
    Layer,
    compute_layers,
    count_layers,
    edges_of,
    parents_of,
    with_derived_edges,
)
from plans.models import ActionPlan
from watcher_site.templatetags.names import visible

DRAWN_ACTIONS = 300
LABEL_LENGTH = 18
# The columns that a box and its edges need.
COLUMNS = ("pk", "uuid", "action_type", "input_parameters", "state", "status_message", "derived_from")
Point = tuple[float, float]
ROWS = 6
WIDTH, HEIGHT = 170, 58
ROW_GAP, COLUMN_GAP, BAND_GAP = 10, 12, 34
PADDING, TITLE = 9, 26
SHOWN_LAYERS = 100


@dataclass
class Node:
    """The box of an action, by its top left corner."""

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
    """The drawing of a layer."""

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

    @property
    def lanes(self) -> list[float]:
        """The vertical positions at which edges pass this band: between, above and below its rows of boxes."""
        tops = sorted({node.y for node in self.nodes})
        return [top - ROW_GAP / 2 for top in tops] + [tops[-1] + HEIGHT + ROW_GAP / 2]


@dataclass(frozen=True)
class Stroke:
    """A part of the edges of a group, which is a set of parents and the children that depend on all of them.

    ``start`` and ``end`` are the keys of its parent and its child; None if it belongs to all parents or all children.
    """

    path: str
    group: int
    start: int | None = None
    end: int | None = None


@dataclass
class Picture:
    """The drawing, in pixels. ``incoming`` and ``outgoing`` have the numbers of the groups of edges of each action."""

    bands: list[Band]
    lines: list[Stroke] = field(default_factory=list)
    arrows: list[Stroke] = field(default_factory=list)
    incoming: dict[int, int] = field(default_factory=dict)
    outgoing: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    @property
    def width(self) -> float:
        return self.bands[-1].right[0] + 2 if self.bands else 0

    @property
    def height(self) -> float:
        return TITLE + max((band.height for band in self.bands), default=0) + 2


def draw_picture(keys: Sequence[int], edges: Sequence[Edge]) -> Picture:
    """Place all actions, and all edges that are not redundant."""
    layer = compute_layers(keys, edges)
    edges = remove_redundant_edges(layer, edges)
    picture = Picture(place_layers(keys, layer, parents_of(edges)))
    for group, (parents, children) in enumerate(children_by_parents(edges).items()):
        picture.incoming |= dict.fromkeys(children, group)
        for parent in parents:
            picture.outgoing[parent].append(group)
        connect_group(picture, layer, group, parents, children)
    return picture


def remove_redundant_edges(layer: Mapping[int, int], edges: Sequence[Edge]) -> list[Edge]:
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


def children_by_parents(edges: Iterable[Edge]) -> dict[frozenset[int], list[int]]:
    """Return the children by their sets of parents."""
    groups: dict[frozenset[int], list[int]] = defaultdict(list)
    for child, parents in parents_of(edges).items():
        groups[frozenset(parents)].append(child)
    return groups


def place_layers(keys: Sequence[int], layer: Mapping[int, int], parents: Mapping[int, set[int]]) -> list[Band]:
    """Place the layers from left to right, and each action near the mean position of its parents."""
    members: dict[int, list[int]] = defaultdict(list)
    for key in keys:
        members[layer[key]].append(key)
    position: dict[int, float] = {}
    bands, x = [], 1.0
    for number in sorted(members):
        ordered = sorted(
            members[number], key=lambda key: fmean([position[parent] for parent in parents.get(key, ())] or [0])
        )
        position.update((key, index / len(ordered)) for index, key in enumerate(ordered))
        bands.append(band := make_band(number, ordered, x))
        x = band.right[0] + BAND_GAP
    return align_bands(bands)


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


def align_bands(bands: list[Band]) -> list[Band]:
    """Set the height of all bands to that of the highest, with their actions centred."""
    highest = max((band.height for band in bands), default=0)
    for band in bands:
        for node in band.nodes:
            node.y += (highest - band.height) / 2
        band.height = highest
    return bands


@dataclass(frozen=True)
class Anchor:
    """The start or the end of edges: a box, a band, or the point before a band at which edges meet."""

    point: Point
    layer: int
    key: int | None = None


def connect_group(
    picture: Picture, layer: Mapping[int, int], group: int, parents: frozenset[int], children: list[int]
) -> None:
    starts = find_anchors(picture.bands, layer, parents, "right")
    ends = find_anchors(picture.bands, layer, children, "left")
    if len(starts) > 1 and len(ends) > 1:
        first = min(end.layer for end in ends)
        height = fmean(anchor.point[1] for anchor in starts + ends)
        middle = Anchor((picture.bands[first].x - BAND_GAP / 2, height), first)
        picture.lines += [Stroke(route_edge(picture.bands, one, middle), group, one.key) for one in starts]
        starts = [middle]
    picture.arrows += [
        Stroke(route_edge(picture.bands, start, end), group, start.key, end.key) for start in starts for end in ends
    ]


def find_anchors(bands: list[Band], layer: Mapping[int, int], keys: Iterable[int], side: str) -> list[Anchor]:
    """Return the anchors of edges of these actions: the band if they are the whole band, otherwise their boxes."""
    by_layer: dict[int, set[int]] = defaultdict(set)
    for key in keys:
        by_layer[layer[key]].add(key)
    found: list[Anchor] = []
    for number, members in by_layer.items():
        band = bands[number]
        if len(members) == len(band.nodes) > 1:
            found.append(Anchor(getattr(band, side), number))
        else:
            found += [Anchor(getattr(node, side), number, node.key) for node in band.nodes if node.key in members]
    return found


def route_edge(bands: list[Band], start: Anchor, end: Anchor) -> str:
    """Return the path of an edge. It passes other boxes in the lanes between their rows."""
    points = [start.point]
    right, left = bands[start.layer].right[0], bands[end.layer].x
    # Other columns of its band are to the right of the box, or the whole band is to the right of the point before it.
    if end.layer > start.layer and points[-1][0] < right - PADDING - COLUMN_GAP:
        lane = nearest_lane(bands[start.layer].lanes, points[-1][1], end.point[1])
        points += [(points[-1][0] + COLUMN_GAP, lane), (right, lane)]
    for band in bands[start.layer + 1 : end.layer]:
        lane = nearest_lane(band.lanes, points[-1][1])
        points += [(band.x, lane), (band.right[0], lane)]
    if end.point[0] > left + PADDING + COLUMN_GAP:
        lane = nearest_lane(bands[end.layer].lanes, end.point[1], points[-1][1])
        points += [(left, lane), (end.point[0] - COLUMN_GAP, lane)]
    points.append(end.point)
    return f"M{points[0][0]:g},{points[0][1]:g} {' '.join(starmap(curve_path, pairwise(points)))}"


def nearest_lane(lanes: Sequence[float], height: float, towards: float | None = None) -> float:
    """Return the lane nearest to a height; of two equally near ones, the one nearer to ``towards``."""
    return min(
        lanes, key=lambda lane: (round(abs(lane - height)), abs(lane - (height if towards is None else towards)))
    )


def curve_path(start: Point, end: Point) -> str:
    (x1, y1), (x2, y2) = start, end
    if y1 == y2:
        return f"H{x2:g}"
    bend = (x2 - x1) / 2
    return f"C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2:g},{y2:g}"


@dataclass
class Box:
    """An action in the picture, with the `COLUMNS` of its row: creating model instances takes much longer."""

    action: Any
    place: Node
    incoming: int | None = None
    outgoing: Sequence[int] = ()

    @property
    def type_label(self) -> str:
        return shorten_label(self.action.action_type)

    @property
    def resource_label(self) -> str:
        return shorten_label(visible(self.resource))

    @property
    def resource(self) -> str:
        return resource(self.action.input_parameters)


def picture_of(plan: ActionPlan, total: int, first_layer: str = "") -> dict[str, Any]:
    """Return the context of the template, in two queries. ``first_layer`` selects the layers of large plans."""
    if total > DRAWN_ACTIONS:
        return layers_from(count_layers(plan), first_layer)
    drawn = plan.actions.present().values_list(*COLUMNS, named=True).order_by("pk")
    actions = {action.pk: action for action in drawn}
    edges = [edge for edge in edges_of(plan) if set(edge) <= actions.keys()]
    picture = draw_picture(
        list(actions), with_derived_edges(edges, {key: action.derived_from for key, action in actions.items()})
    )
    return {"picture": picture, "boxes": make_boxes(picture, actions), "box_width": WIDTH}


def layers_from(found: list[Layer], first: str) -> dict[str, Any]:
    """Return the context for a page of layers from a number on, or from the first if the number is invalid."""
    begin = int(first) - 1 if re.fullmatch(r"[1-9]\d{0,6}", first) else 0
    shown = found[begin : begin + SHOWN_LAYERS] or found[:SHOWN_LAYERS]
    return {
        "layers": shown,
        "largest_layer": max(layer.total for layer in found),
        "layer_count": len(found),
        "earlier_layers": max(shown[0].number - SHOWN_LAYERS, 1) if shown[0].number > 1 else None,
        "later_layers": shown[-1].number + 1 if shown[-1].number < len(found) else None,
    }


def make_boxes(picture: Picture, actions: Mapping[int, Any]) -> list[Box]:
    return [
        Box(actions[node.key], node, picture.incoming.get(node.key), picture.outgoing.get(node.key, ()))
        for band in picture.bands
        for node in band.nodes
    ]


def shorten_label(text: str, length: int = LABEL_LENGTH) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
