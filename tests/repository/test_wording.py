"""The wording check finds rejected words, and the page for contributors lists the words that it rejects."""

import re
from pathlib import Path

import pytest

from tests import wording

FIELDS = ("serializers.IntegerField", "models.IntegerField")
PAGE = (wording.ROOT / "docs" / "contributing.md").read_text()


def broken_rules(source: str, path: str = "plans/example.py") -> list[tuple[str, str, int]]:
    """Return rule, place and line of each breach in a module."""
    found = wording.python_passages(Path(path), source)
    return [(rule.name, passage.place, passage.line) for each in found for rule, passage in wording.breaches(each)]


def test_contributing_page_lists_the_rejected_words() -> None:
    listed = re.findall(r"^\| (.+) \| (.+) \|$", PAGE.partition("### Rejected words")[2], re.MULTILINE)
    rows = [row for row in listed if row not in {("rejected", "instead"), ("---", "---")}]
    assert rows == [(rule.name, rule.instead) for rule in wording.RULES]


@pytest.mark.parametrize(
    "opening",
    ["Have it run.", "Leave those.", "What waits.", "Say whether it waits.", "Answer a request.", "Tell the time."],
)
def test_rejected_docstring_openings_are_found(opening: str) -> None:
    [(_, place, line)] = broken_rules(f'def run():\n    """{opening}"""\n')
    assert (place, line) == ("opening", 2)


@pytest.mark.parametrize(
    "text",
    [
        "It begins anew.",
        "Lest it waits.",
        "It is gone for good.",
        "It knows of it.",
        "It shall wait.",
        "Now and then.",
        "Rows in few words.",
        "It shows whose it is.",
        "Return what becomes of it.",
    ],
)
def test_archaic_words_are_found_in_texts(text: str) -> None:
    assert [place for _, place, _ in broken_rules(f'"""{text}"""\n')] == ["text"]


def test_rejected_word_is_found_in_a_function_name() -> None:
    assert [rule for rule, _, _ in broken_rules("def draw_anew(): ...\n")] == ["anew"]


def test_clause_is_found_only_in_the_name_of_a_test() -> None:
    assert [rule for rule, _, _ in broken_rules("def test_what_waits_is_late(): ...\n")] == [
        "clause in the name of a test"
    ]
    assert broken_rules("def what_waits(): ...\n") == []


def test_opening_rules_apply_only_to_the_start_of_a_docstring() -> None:
    assert broken_rules('"""Return rows. What follows. Have a look."""\n') == []


def test_word_is_found_on_its_line_of_a_comment_and_of_a_docstring() -> None:
    source = '"""Return a row.\n\nIt heeds the rules."""\n\n# Nobody is told.\n'
    assert sorted(broken_rules(source)) == [("heed", "text", 3), ("told", "text", 5)]


@pytest.mark.parametrize(
    "name", ["class FreeRoom: ...", "def free_room(): ...", "free_room = 1", "def f(free_room): ..."]
)
def test_word_is_found_in_names(name: str) -> None:
    assert [(rule, place) for rule, place, _ in broken_rules(name)] == [("room", "name")]


def test_word_is_found_in_a_module_name() -> None:
    assert broken_rules("", "lateness.py") == [("lateness", "name", 1)]


def test_openapi_texts_and_help_texts_are_checked() -> None:
    view = 'def start(self, request: Request) -> Response:\n    """Have the plan put off."""\n'
    assert {rule for rule, _, _ in broken_rules(view)} == {"Have …", "put off"}
    serializer, model = (f'time = {name}(help_text="how often it was put off")\n' for name in FIELDS)
    assert broken_rules(serializer) == broken_rules(model) == [("put off", "text", 1)]


def test_string_literals_of_tests_are_not_checked() -> None:
    source = 'message = "nobody is told"\n'
    assert [rule for rule, _, _ in broken_rules(source)] == ["told"]
    assert broken_rules(source, "tests/plans/test_example.py") == []


def test_page_phrases_are_rejected_only_in_the_console() -> None:
    source = 'message = "Nobody has done anything"\n'
    assert broken_rules(source, "plans/console/example.py") == [("nobody, somebody", "page", 1)]
    assert broken_rules(source, "plans/example.py") == []


def test_quoted_code_is_not_checked() -> None:
    assert broken_rules('"""Return `room` and ``told``."""\n') == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("page.md", "The `first` is told the `second`.\n"),
        ("page.html", "The {{ first }} is told the {{ second }}.\n"),
        ("module.py", '"""The `first` is told the `second`."""\n'),
    ],
)
def test_text_between_two_code_spans_is_checked(
    name: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wording, "ROOT", tmp_path)
    (tmp_path / name).write_text(source)
    found = [rule.name for passage in wording.passages(Path(name)) for rule, _ in wording.breaches(passage)]
    assert found == ["told"]


def test_names_of_the_api_are_not_rejected() -> None:
    assert broken_rules("make_room = 1\n") == []


def test_column_names_are_kept_only_where_they_are_defined() -> None:
    assert broken_rules("deed = 1\n", "watcher_site/models/history.py") == []
    assert broken_rules("deed = 1\n", "watcher_site/models/services.py") == [("deed", "name", 1)]
