"""The geometry of the graph of a plan."""

import re
from itertools import combinations
from operator import mul

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from hypothesis import example, given
from hypothesis import strategies as st

from actions.models import Action
from plans.console.graph.layers import Edge, Layer, compute_layers, with_derived_edges
from plans.console.graph.picture import draw_picture, layers_from, picture_of
from plans.models import ActionPlan
from tests.builders import make_plan

edge_lists = st.integers(1, 40).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda edge: edge[0] < edge[1])),
    )
)


def test_layer_of_an_action_is_its_longest_path_from_the_start() -> None:
    assert compute_layers([1, 2, 3, 4], [(1, 2), (2, 3), (1, 3)]) == {1: 0, 2: 1, 3: 2, 4: 0}


@given(edge_lists)
def test_boxes_do_not_overlap_and_lie_inside_the_picture(graph: tuple[int, list[Edge]]) -> None:
    size, edges = graph
    picture = draw_picture(range(size), edges)
    nodes = [node for band in picture.bands for node in band.nodes]
    assert sorted(node.key for node in nodes) == list(range(size))
    assert all(node.right[0] < picture.width and node.y + node.height < picture.height for node in nodes)
    assert all(abs(a.x - b.x) >= a.width or abs(a.y - b.y) >= a.height for a, b in combinations(nodes, 2))


@given(edge_lists)
def test_edges_lead_to_later_layers(graph: tuple[int, list[Edge]]) -> None:
    size, edges = graph
    layer = compute_layers(range(size), edges)
    assert all(layer[parent] < layer[child] for parent, child in edges)


def points_of(path: str) -> list[tuple[float, float]]:
    """Return points along a path of horizontal lines and curves."""
    found: list[tuple[float, float]] = []
    x, y = 0.0, 0.0
    for kind, numbers in re.findall("([MHC])([^MHC]*)", path):
        values = [float(number) for number in re.split("[ ,]+", numbers.strip())]
        if kind == "M":
            x, y = values
        elif kind == "H":
            found += [(x + (values[0] - x) * step / 20, y) for step in range(21)]
            x = values[0]
        else:
            x1, y1, x2, y2, x3, y3 = values
            for step in range(21):
                t, u = step / 20, 1 - step / 20
                weights = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
                found.append(tuple(sum(map(mul, weights, ends)) for ends in ((x, x1, x2, x3), (y, y1, y2, y3))))
            x, y = x3, y3
    return found


# Edges that meet before a band lead to a part of its boxes.
@example((6, [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3)]))
@given(edge_lists)
def test_edges_do_not_cross_boxes(graph: tuple[int, list[Edge]]) -> None:
    size, edges = graph
    picture = draw_picture(range(size), edges)
    nodes = [node for band in picture.bands for node in band.nodes]
    points = [point for stroke in (*picture.lines, *picture.arrows) for point in points_of(stroke.path)]
    assert not [
        (x, y)
        for x, y in points
        for node in nodes
        if node.x + 1 < x < node.x + node.width - 1 and node.y + 1 < y < node.y + node.height - 1
    ]


def test_box_has_the_numbers_of_its_incoming_and_outgoing_edges() -> None:
    picture = draw_picture(range(4), [(0, 1), (1, 2), (1, 3)])
    assert picture.incoming[1] == picture.outgoing[0][0]
    assert {picture.incoming[2], picture.incoming[3]} == set(picture.outgoing[1])


def test_layer_that_waits_for_the_whole_previous_layer_has_one_arrow() -> None:
    edges = [(parent, child) for parent in range(30) for child in range(30, 60)]
    picture = draw_picture(range(60), edges)
    assert len(picture.arrows) == 1
    assert picture.lines == []


def test_parents_shared_by_several_children_meet_in_one_point() -> None:
    picture = draw_picture(range(7), [(0, 3), (1, 3), (0, 4), (1, 4), (2, 5)])
    assert (len(picture.lines), len(picture.arrows)) == (2, 3)


def test_empty_plan_has_an_empty_picture() -> None:
    assert draw_picture([], []).width == 0


def test_derived_actions_are_placed_after_the_parents_of_their_origin() -> None:
    """Action 1 is a parent of 2, which derives 3 and its child 4."""
    edges = with_derived_edges([(1, 2), (3, 4), (3, 2), (4, 2)], {1: None, 2: None, 3: 2, 4: 2})
    assert compute_layers([1, 2, 3, 4], edges) == {1: 0, 3: 1, 4: 2, 2: 3}


def test_actions_of_a_nested_derivation_are_placed_before_their_origin() -> None:
    """Action 1 is a parent of 2, which derives 3, which derives 4."""
    edges = with_derived_edges([(1, 2), (3, 2), (4, 3)], {1: None, 2: None, 3: 2, 4: 3})
    assert compute_layers([1, 2, 3, 4], edges) == {1: 0, 4: 1, 3: 2, 2: 3}


def make_large_plan() -> ActionPlan:
    """Make a plan of a chain of 150 layers, the first of which has 200 actions."""
    chain = {str(number): [str(number - 1)] if number else [] for number in range(150)}
    return make_plan({**chain, **{f"wide-{number}": [] for number in range(199)}})


def test_layers_of_a_large_plan_link_to_their_actions(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = make_large_plan()
    address = reverse("plans:detail", args=[plan.uuid])
    page = client.get(address)
    text = page.content.decode()
    assert 'href="?layer=100#actions-heading"' in text
    assert 'href="?layer=101#actions-heading"' not in text
    assert page.context["largest_layer"] == 200
    later = client.get(address, {"layers": page.context["later_layers"]})
    assert [layer.number for layer in later.context["layers"]] == list(range(101, 151))
    assert later.context["earlier_layers"] == 1
    assert client.get(address, {"layer": "1"}).context["matching"] == 200


@pytest.mark.parametrize("first", ["0", "x", "-1", "151", "9" * 30])
def test_invalid_layer_number_selects_the_first_layer(first: str) -> None:
    found = [Layer(number, {"PENDING": 1}) for number in range(1, 151)]
    assert layers_from(found, first)["layers"][0].number == 1


def test_german_graph_has_numbers_with_decimal_points(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = make_plan({"a": [], "b": ["a"]})
    page = client.get(reverse("plans:detail", args=[plan.uuid]), headers={"Accept-Language": "de"}).content.decode()
    assert '<html lang="de"' in page
    assert re.findall(r'\b(?:x|y|width|height)="[\d.]*,[^"]*"', page) == []


@pytest.mark.django_db
def test_label_with_control_characters_is_cut_with_their_marks() -> None:
    plan = make_plan()
    Action.objects.create(
        action_plan=plan, action_type="migrate", input_parameters={"resource_name": "evil-\u202egpj.exe-\u2066name"}
    )
    (box,) = picture_of(plan, 1)["boxes"]
    assert box.resource_label == "evil-U+202Egpj.ex…"


def test_box_marks_control_characters_with_elements(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    plan = make_plan()
    Action.objects.create(action_plan=plan, action_type="nop", input_parameters={"resource_name": "evil\u202ename"})
    page = client.get(reverse("plans:detail", args=[plan.uuid])).content.decode()
    assert '>evil<tspan class="control">U+202E</tspan>name</text>' in page
    assert 'aria-label="evilU+202Ename nop PENDING"' in page


def test_list_of_layers_has_a_heading_without_the_words_about_arrows(client: Client, cloud_admin: User) -> None:
    client.force_login(cloud_admin)
    page = client.get(reverse("plans:detail", args=[make_large_plan().uuid])).content.decode()
    (heading,) = re.findall('<h2 id="graph-heading">(.*?)</h2>', page, re.DOTALL)
    assert heading.split() == ["Layers"]
