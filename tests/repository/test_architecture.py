"""The state diagrams of docs/architecture.md are those of the code."""

from tests.repository.state_diagrams import PAGE, draw_all, drawn_models, with_diagrams

TEXT = PAGE.read_text()


def test_the_state_diagrams_are_those_of_the_code() -> None:
    assert with_diagrams(TEXT) == TEXT, "Run `python -m tests.repository.state_diagrams`."


def test_every_state_machine_is_drawn_once() -> None:
    assert sorted(drawn_models(TEXT)) == sorted(draw_all())
