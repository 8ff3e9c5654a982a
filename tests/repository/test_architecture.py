"""docs/architecture.md is short, and its state diagrams are those of the code."""

import re

from tests.repository.state_diagrams import PAGE, draw_all, drawn_models, with_diagrams

TEXT = PAGE.read_text()
WORDS = 2500


def test_the_state_diagrams_are_those_of_the_code() -> None:
    assert with_diagrams(TEXT) == TEXT, "Run `python -m tests.repository.state_diagrams`."


def test_every_state_machine_is_drawn_once() -> None:
    assert sorted(drawn_models(TEXT)) == sorted(draw_all())


def test_the_page_without_diagrams_and_code_blocks_does_not_exceed_its_number_of_words() -> None:
    prose = re.sub(r"^```.*?^```|<!--.*?-->", "", TEXT, flags=re.DOTALL | re.MULTILINE)
    # The bars of tables are not words.
    words = [word for word in prose.split() if re.search(r"\w", word)]
    assert len(words) <= WORDS
