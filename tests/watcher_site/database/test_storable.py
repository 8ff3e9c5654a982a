"""`require_storable` refuses values that no column can store, with their path."""

from typing import Any

import pytest

from watcher_site.database.text import require_storable
from watcher_site.refusals import Invalid


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\0", "field: must not contain NUL characters."),
        ({"a": ["b", "\ud800"]}, "field.a.1: must not contain lone surrogates."),
        ({"a\0": 1}, "field: must not contain NUL characters in a name."),
        ([float("nan")], "field.0: must not contain infinite or undefined numbers."),
        ([float("inf")], "field.0: must not contain infinite or undefined numbers."),
    ],
)
def test_unstorable_value_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(Invalid) as refusal:
        require_storable("field", value)
    assert str(refusal.value) == message


@pytest.mark.parametrize("value", [None, "", "🌩", {"a": [1, 2.5, True, None, {"b": "c"}]}, 10**100])
def test_storable_value_is_accepted(value: Any) -> None:
    require_storable("field", value)
