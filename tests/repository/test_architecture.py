"""docs/architecture.md is short, and its state diagrams match the code."""

import re

from tests.documentation.blocks import find_blocks
from tests.repository.state_diagrams import BLOCK, PAGE, draw_all, picture_of, source_of, with_diagrams

TEXT = PAGE.read_text()
WORDS = 2500


def test_state_diagrams_match_the_code() -> None:
    assert with_diagrams(TEXT) == TEXT, "Run `python -m tests.repository.state_diagrams`."


def test_every_state_machine_has_one_diagram() -> None:
    drawn = find_blocks("docs/architecture.md", "## States", language="mermaid")
    assert sorted(f"```mermaid\n{block.text}```" for block in drawn) == sorted(draw_all().values())


def test_pictures_of_state_diagrams_are_drawn_from_the_diagrams_of_the_page() -> None:
    drawn = {block[1]: f"```mermaid\n{source_of(picture_of(block[1]))}```" for block in BLOCK.finditer(TEXT)}
    assert drawn == draw_all(), "Run `python -m tests.repository.state_diagrams`."


def test_prose_does_not_exceed_the_word_limit() -> None:
    prose = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
    assert len(prose.split()) <= WORDS
