"""The pictures and tables in which the built documentation shows the state diagrams."""

from collections.abc import Callable
from importlib import import_module

import pytest
from docutils import nodes

from tests.documentation.blocks import Block, find_blocks
from tests.processes import ROOT

DIAGRAM = """stateDiagram-v2
    %% states of plans.ActionPlan
    state "PENDING or ONGOING" as box1
    [*] --> RECOMMENDED
    RECOMMENDED --> PENDING: start
    box1 --> FAILED: fail, time_out
    RECOMMENDED --> CANCELLED: cancel
"""

MakeTable = Callable[[str], nodes.table]


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
