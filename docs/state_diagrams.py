"""A Sphinx extension that shows each state diagram as a picture, with a table of its transitions.

Hosts of repositories draw the Mermaid text. The renderer is a script of 3 MB, which the site does not serve:
``python -m tests.repository.state_diagrams`` makes the pictures.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx

MODEL = re.compile(r"^ *%% states of (\S+)$", re.MULTILINE)
BOX = re.compile(r'^ *state "(.+)" as (\w+)$', re.MULTILINE)
ARROW = re.compile(r"^ *(\S+) --> (\w+)(?:: (.+))?$", re.MULTILINE)
COLUMNS = ("from", "transition", "to")
# The beginning of a diagram, from which an arrow leads to the state of new objects.
BEGINNING = "[*]"


def setup(app: Sphinx) -> dict[str, bool]:
    # Before the images of the page are collected.
    app.connect("doctree-read", replace_diagrams, priority=400)
    return {"parallel_read_safe": True}


def replace_diagrams(app: Sphinx, document: nodes.document) -> None:
    for block in list(document.findall(nodes.literal_block)):
        if block.get("language") == "mermaid":
            block.replace_self([make_image(block.astext()), make_table(block.astext())])


def make_image(diagram: str) -> nodes.image:
    (model,) = MODEL.findall(diagram)
    return nodes.image("", uri=picture_name(model), alt=f"State diagram of {model}, with the transitions of the table")


def picture_name(model: str) -> str:
    """Return the path of the picture of a model in docs/."""
    return f"pictures/states-{nodes.make_id(model)}.svg"


def make_table(diagram: str) -> nodes.table:
    (model,) = MODEL.findall(diagram)
    # The cells of the first column are headers of their rows.
    columns = [nodes.colspec(colwidth=1, stub=name == COLUMNS[0]) for name in COLUMNS]
    head = nodes.thead("", make_row(*([nodes.Text(name)] for name in COLUMNS)))
    body = nodes.tbody("", *make_rows(diagram))
    group = nodes.tgroup("", *columns, head, body, cols=len(COLUMNS))
    return nodes.table("", nodes.title("", f"Transitions of {model}"), group, ids=[nodes.make_id(model)])


def make_rows(diagram: str) -> Iterator[nodes.row]:
    """Yield a row for each arrow. Those from the same states follow each other."""
    states = {name: text for text, name in BOX.findall(diagram)} | {BEGINNING: "a new object"}
    arrows = ARROW.findall(diagram)
    sources = list(dict.fromkeys(source for source, _, _ in arrows))
    for source, target, names in sorted(arrows, key=lambda arrow: sources.index(arrow[0])):
        methods = [node for name in names.split(", ") for node in (nodes.Text(", "), nodes.literal("", name))][1:]
        ends = [nodes.Text(states.get(name, name)) for name in (source, target)]
        yield make_row(ends[:1], methods if names else [], ends[1:])


def make_row(*cells: list[nodes.Node]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *content)) for content in cells))
