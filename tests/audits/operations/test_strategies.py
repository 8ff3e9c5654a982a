"""Validation of the parameters of audits against the schema of their strategy."""

from typing import Any

import pytest

from audits.operations.strategies import complete_parameters
from audits.strategies.actuator import Actuator
from audits.strategies.dummy import Dummy
from audits.strategies.host_maintenance import HostMaintenance
from watcher_site.refusals import Invalid


def test_defaults_of_the_schema_are_added() -> None:
    assert complete_parameters(Dummy.schema, {}) == {"para1": 3.2, "para2": "hello"}


def test_given_value_overrides_the_default() -> None:
    assert complete_parameters(Dummy.schema, {"para2": "bye"}) == {"para1": 3.2, "para2": "bye"}


def test_defaults_inside_an_object_are_added() -> None:
    schema = {"properties": {"periods": {"type": "object", "default": {}, "properties": {"node": {"default": 600}}}}}
    assert complete_parameters(schema, {"periods": {}}) == {"periods": {"node": 600}}


def test_given_parameters_are_not_modified_in_place() -> None:
    parameters: dict[str, Any] = {}
    complete_parameters(Dummy.schema, parameters)
    assert parameters == {}


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({"para1": 20}, "para1: 20 is greater than the maximum of 10.2"),
        ({"para1": 0.5}, "para1: 0.5 is less than the minimum of 1.0"),
        ({"para1": "3"}, "para1: '3' is not of type 'number'"),
        ({"para1": True}, "para1: True is not of type 'number'"),
        ({"para2": None}, "para2: None is not of type 'string'"),
    ],
)
def test_parameter_that_violates_the_schema_is_refused(parameters: dict[str, Any], rule: str) -> None:
    with pytest.raises(Invalid) as refusal:
        complete_parameters(Dummy.schema, parameters)
    assert str(refusal.value) == f"Invalid parameters for strategy: {rule}"


def test_parameter_unknown_to_the_schema_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^Audit parameter zz are not allowed$"):
        complete_parameters(Dummy.schema, {"zz": 1})


def test_error_names_a_missing_required_parameter() -> None:
    with pytest.raises(Invalid, match="'maintenance_node' is a required property"):
        complete_parameters(HostMaintenance.schema, {})


def test_error_names_the_path_of_a_nested_parameter() -> None:
    with pytest.raises(Invalid, match=r"actions\.0: 'input_parameters' is a required property"):
        complete_parameters(Actuator.schema, {"actions": [{"action_type": "nop"}]})


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_with_nul_or_surrogate_characters_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"^parameters\.para2: must not contain "):
        complete_parameters(Dummy.schema, {"para2": text})


def test_deeply_nested_parameters_are_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Invalid, match="nested deeper than 50 levels"):
        complete_parameters(Dummy.schema, {"para2": deep})


def test_error_truncates_a_long_value() -> None:
    with pytest.raises(Invalid) as refusal:
        complete_parameters(Dummy.schema, {"para1": "x" * 1_000_000})
    assert len(str(refusal.value)) < 400


def test_error_of_default_parameters_names_default_parameters() -> None:
    with pytest.raises(Invalid, match=r"^Invalid default_parameters for strategy: para1: "):
        complete_parameters(Dummy.schema, {"para1": 20}, "default_parameters")
