"""Positions and lines of values in JSON texts."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.json_lines import line_of, list_members, parse_document, skip_blanks

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each path of a document and its value."""
    yield path, value
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield from places(item, (*path, step))


@given(documents, st.sampled_from([None, 0, 2]))
def test_position_of_each_path_is_the_start_of_its_value(document: Any, indent: int | None) -> None:
    text = json.dumps(document, indent=indent)
    for path, value in places(document):
        position = skip_blanks(text, 0)
        for step in path:
            position = dict(list_members(text, position))[step]
        assert json.JSONDecoder().raw_decode(text, position)[0] == value


@given(documents)
def test_parsed_document_equals_the_standard_json_parser(document: Any) -> None:
    assert parse_document(json.dumps(document).encode())[1] == document


@pytest.mark.parametrize(
    ("path", "line"),
    [((), 1), (("a",), 2), (("a", 1), 4), (("b",), 5), (("b", "c"), 6), (("b", "missing"), 5), (("nowhere",), 1)],
)
def test_line_of_a_path_counts_from_1(path: tuple[str | int, ...], line: int) -> None:
    text = '{\n"a": [\n1,\n2],\n"b": {\n"c": 3}}'
    assert line_of(text, path) == line
