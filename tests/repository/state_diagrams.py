"""Draw the state machines of the models in docs/architecture.md, as Mermaid diagrams.

``python -m tests.repository.state_diagrams`` rewrites each diagram of the page, which has the comment
``%% states of <app>.<Model>``, and its picture in docs/pictures/, which contains the text that it was drawn from.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, unescape

import django
from django.apps import apps
from django_fsm import FSMField

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
PICTURES = PAGE.parent / "pictures"
SOURCE = re.compile(r"<metadata>(.*?)</metadata>", re.DOTALL)
# Labels in HTML are cut where the fonts of the reader are wider. With Mermaid's default spacing of 50, labels overlap
# each other and states. The spacing of flow charts also applies to state diagrams.
OPTIONS = {
    "fontFamily": "Arial, Helvetica, sans-serif",
    "htmlLabels": False,
    "state": {"useMaxWidth": False},
    "flowchart": {"nodeSpacing": 120, "rankSpacing": 70},
}
BLOCK = re.compile(r"^```mermaid\nstateDiagram-v2\n    %% states of ([\w.]+)\n.*?^```$", re.DOTALL | re.MULTILINE)
# A transition from at least this number of states has one arrow, from a box that lists them.
MANY = 4
# A box names the states that it leaves out, if these are not more.
MOST_EXCEPTIONS = 3
# Methods that change a state by a separate statement, between states without a transition.
STATEMENTS = {
    "audits.Audit": [
        ("claim", "PENDING", "ONGOING"),
        ("end_series", "PENDING", "SUCCEEDED"),
        ("cancel_unfinished", "SUSPENDED", "CANCELLED"),
    ],
    "cluster.Stack": [("remove", "DELETE_IN_PROGRESS", "DELETE_COMPLETE")],
}


@dataclass
class Step:
    """A transition: the states that it leads from, and the states that it may lead to."""

    name: str
    sources: set[str]
    targets: set[str]


class Diagram:
    """The lines of the Mermaid diagram of one state field."""

    def __init__(self, model: Any, field: Any) -> None:
        self.model = model._meta.label
        self.states = [str(state) for state, _ in field.choices]
        self.initial = str(field.default)
        self.boxes: dict[str, str] = {}
        self.arrows: defaultdict[tuple[str, str], list[str]] = defaultdict(list)

    def add(self, step: Step) -> None:
        is_vague = len(step.sources) > 1 and len(step.targets) > 1
        for source in self.ends(step.sources, is_vague):
            for target in self.ends(step.targets, is_vague):
                self.arrows[source, target].append(step.name)

    def ends(self, states: set[str], is_one: bool) -> list[str]:
        """Return the ends of arrows for these states: each state, or one box for many or if ``is_one``."""
        ordered = [state for state in self.states if state in states]
        if len(ordered) == 1 or (len(ordered) < MANY and not is_one):
            return ordered
        return [self.boxes.setdefault(self.describe(ordered), f"box{len(self.boxes) + 1}")]

    def describe(self, states: Sequence[str]) -> str:
        others = [state for state in self.states if state not in states]
        if len(others) > MOST_EXCEPTIONS:
            return join(states, "or")
        return f"any state except {join(others, 'and')}" if others else "any state"

    def lines(self) -> Iterator[str]:
        yield "stateDiagram-v2"
        yield f"    %% states of {self.model}"
        yield from (f'    state "{text}" as {name}' for text, name in self.boxes.items())
        yield f"    [*] --> {self.initial}"
        yield from (
            f"    {source} --> {target}: {', '.join(names)}" for (source, target), names in self.arrows.items()
        )


def join(words: Sequence[str], conjunction: str) -> str:
    return f" {conjunction} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def steps_of(model: Any, field: Any) -> list[Step]:
    """Return the transitions of a model in the order of their definition."""
    everywhere = {str(state) for state, _ in field.choices}
    found: dict[str, Step] = {}
    for transition in field.get_all_transitions(model):
        step = found.setdefault(transition.name, Step(transition.name, set(), set()))
        step.sources |= everywhere if transition.source == "*" else {str(transition.source)}
        step.targets |= {str(state) for state in getattr(transition.target, "allowed_states", [transition.target])}
    lines = {name: method(model, name).__code__.co_firstlineno for name in found}
    return sorted(found.values(), key=lambda step: lines[step.name])


def method(model: Any, name: str) -> Any:
    found = getattr(model, name, None) or getattr(model.objects, name)
    return getattr(found, "__wrapped__", found)


def draw(model: Any, field: Any) -> str:
    diagram = Diagram(model, field)
    statements = STATEMENTS.get(model._meta.label, [])
    further = [Step(method(model, name).__name__, {source}, {target}) for name, source, target in statements]
    for step in (*steps_of(model, field), *further):
        diagram.add(step)
    return "\n".join(("```mermaid", *diagram.lines(), "```"))


def draw_all() -> dict[str, str]:
    """Return the diagram of each model; models that share one are named after the first."""
    found: dict[tuple[Any, ...], tuple[str, str]] = {}
    for model in apps.get_models():
        for field in model._meta.get_fields():
            if isinstance(field, FSMField):
                # Models that inherit a state machine share its functions.
                machine = tuple(sorted({method(model, step.name).__qualname__ for step in steps_of(model, field)}))
                found.setdefault(machine, (model._meta.label, draw(model, field)))
    return dict(found.values())


def with_diagrams(page: str) -> str:
    """Return the text of the page with the present diagrams. Raises: `KeyError`, for a model without states."""
    diagrams = draw_all()
    return BLOCK.sub(lambda found: diagrams[found[1]], page)


def picture_of(model: str) -> Path:
    return PICTURES / f"states-{model.lower().replace('.', '-')}.svg"


def source_of(picture: Path) -> str:
    """Return the Mermaid text that a picture was drawn from."""
    (found,) = SOURCE.findall(picture.read_text())
    return unescape(found)


def main() -> None:
    # Not available for each processor: without it, the page is not changed either.
    import mermaidx

    text = with_diagrams(PAGE.read_text())
    PAGE.write_text(text)
    for block in BLOCK.finditer(text):
        source = block[0].removeprefix("```mermaid\n").removesuffix("```")
        element, rest = mermaidx.render(source, theme="neutral", config=OPTIONS).svg().split(">", 1)
        picture_of(block[1]).write_text(f"{element}><metadata>{escape(source)}</metadata>{rest}\n")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    main()
