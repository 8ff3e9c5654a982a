"""The compiled check of values, which never accepts more than the validator that describes violations."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from watcher_site.validation import compile_check, find_violation

SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer", "minimum": 1}, "name": {"type": "string", "pattern": "^[a-z]+$"}},
    "required": ["number"],
    "additionalProperties": False,
}


def test_fast_check_accepts_a_valid_value() -> None:
    assert compile_check(SCHEMA)({"number": 1, "name": "a"})


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"number": 0},
        {"number": True},
        {"number": "1"},
        {"number": 1, "name": "A"},
        {"number": 1, "other": 3},
    ],
    ids=repr,
)
def test_fast_check_rejects_every_value_with_a_violation(value: Any) -> None:
    assert find_violation(Draft202012Validator(SCHEMA), value)
    assert not compile_check(SCHEMA)(value)


def test_uncompilable_schema_leaves_the_check_to_the_validator() -> None:
    schema = {"type": "string", "pattern": r"(?P<word>a)(?P=word)"}
    assert not compile_check(schema)("aa")
    assert find_violation(Draft202012Validator(schema), "aa") is None
