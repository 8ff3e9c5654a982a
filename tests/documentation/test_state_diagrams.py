"""The pictures and tables in which the built documentation shows the state diagrams."""

import re
from collections.abc import Callable
from importlib import import_module
from itertools import combinations
from pathlib import Path

import pytest
from docutils import nodes

from tests.documentation.blocks import Block, find_blocks
from tests.processes import ROOT
from tests.repository.state_diagrams import source_of

DIAGRAM = """stateDiagram-v2
    %% states of plans.ActionPlan
    state "PENDING or ONGOING" as box1
    [*] --> RECOMMENDED
    RECOMMENDED --> PENDING: start
    box1 --> FAILED: fail, time_out
    RECOMMENDED --> CANCELLED: cancel
"""

NUMBER = r"(-?[\d.]+)"
# The position of a label or state, the offset of its text if it is a label, and the rectangle behind its text.
AREA = re.compile(
    rf'<g class="(?:edgeLabel|node )[^>]* transform="translate\({NUMBER}, {NUMBER}\)">'
    rf'(?:<g class="label"[^>]* transform="translate\({NUMBER}, {NUMBER}\)"><g>)?'
    rf'<rect [^>]* x="{NUMBER}" y="{NUMBER}" width="{NUMBER}" height="{NUMBER}"'
)
# The part of a rectangle around its text.
PADDING = 2
MakeTable = Callable[[str], nodes.table]
Area = tuple[float, float, float, float]


@pytest.fixture
def make_table(monkeypatch: pytest.MonkeyPatch) -> MakeTable:
    monkeypatch.syspath_prepend(ROOT / "docs")
    found: MakeTable = import_module("state_diagrams").make_table
    return found


def texts(table: nodes.table) -> list[list[str]]:
    return [[cell.astext() for cell in row.findall(nodes.entry)] for row in table.findall(nodes.row)]


def test_transitions_of_a_state_are_adjacent_rows(make_table: MakeTable) -> None:
    assert texts(make_table(DIAGRAM)) == [
        ["from", "transition", "to"],
        ["a new object", "", "RECOMMENDED"],
        ["RECOMMENDED", "start", "PENDING"],
        ["RECOMMENDED", "cancel", "CANCELLED"],
        ["PENDING or ONGOING", "fail, time_out", "FAILED"],
    ]


def test_table_has_the_model_as_caption(make_table: MakeTable) -> None:
    (caption,) = make_table(DIAGRAM).findall(nodes.title)
    assert caption.astext() == "Transitions of plans.ActionPlan"


@pytest.mark.parametrize("block", find_blocks("docs/architecture.md", "## States", language="mermaid"))
def test_each_diagram_of_the_documentation_has_a_picture(monkeypatch: pytest.MonkeyPatch, block: Block) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    picture = import_module("state_diagrams").make_image(block.text)
    assert (ROOT / "docs" / picture["uri"]).is_file()


@pytest.mark.parametrize("block", find_blocks("docs/architecture.md", "## States", language="mermaid"))
def test_table_has_a_row_for_each_arrow_of_the_documentation(make_table: MakeTable, block: Block) -> None:
    assert len(texts(make_table(block.text))) - 1 == block.text.count(" --> ")


@pytest.mark.parametrize(
    "picture", sorted((ROOT / "docs" / "pictures").glob("states-*.svg")), ids=lambda path: path.stem
)
def test_labels_and_states_of_a_picture_do_not_overlap(picture: Path) -> None:
    areas = []
    for numbers in AREA.findall(picture.read_text()):
        x, y, text_x, text_y, left, top, width, height = (float(number or 0) for number in numbers)
        areas.append(
            (x + text_x + left + PADDING, y + text_y + top + PADDING, width - 2 * PADDING, height - 2 * PADDING)
        )
    assert len(areas) > source_of(picture).count(": ")
    assert [(a, b) for a, b in combinations(areas, 2) if overlap(a, b)] == []


def overlap(first: Area, second: Area) -> bool:
    return all(first[i] < second[i] + second[i + 2] and second[i] < first[i] + first[i + 2] for i in (0, 1))
