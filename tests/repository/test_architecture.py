"""docs/architecture.md is short, and its state diagrams match the code."""

import re

from tests.documentation.blocks import find_blocks
from tests.repository.state_diagrams import PAGE, draw_all, with_diagrams

TEXT = PAGE.read_text()
WORDS = 2500


def test_state_diagrams_match_the_code() -> None:
    assert with_diagrams(TEXT) == TEXT, "Run `python -m tests.repository.state_diagrams`."


def test_every_state_machine_has_one_diagram() -> None:
    drawn = find_blocks("docs/architecture.md", "## States", language="mermaid")
    assert sorted(f"```mermaid\n{block.text}```" for block in drawn) == sorted(draw_all().values())


def test_prose_does_not_exceed_the_word_limit() -> None:
    prose = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
    assert len(prose.split()) <= WORDS
