"""The parameters of audits are held against the schema of their strategy."""

from typing import Any

import pytest

from audits.operations.strategies import complete_parameters
from audits.strategies.actuator import Actuator
from audits.strategies.dummy import Dummy
from audits.strategies.host_maintenance import HostMaintenance
from watcher_site.refusals import Invalid


def test_defaults_are_filled_in() -> None:
    assert complete_parameters(Dummy.schema, {}) == {"para1": 3.2, "para2": "hello"}


def test_what_is_given_stays() -> None:
    assert complete_parameters(Dummy.schema, {"para2": "bye"}) == {"para1": 3.2, "para2": "bye"}


def test_defaults_inside_an_object_are_filled_in() -> None:
    schema = {"properties": {"periods": {"type": "object", "default": {}, "properties": {"node": {"default": 600}}}}}
    assert complete_parameters(schema, {"periods": {}}) == {"periods": {"node": 600}}


def test_the_given_parameters_are_left_as_they_are() -> None:
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
def test_a_parameter_against_the_schema_is_refused(parameters: dict[str, Any], rule: str) -> None:
    with pytest.raises(Invalid) as refusal:
        complete_parameters(Dummy.schema, parameters)
    assert str(refusal.value) == f"Invalid parameters for strategy: {rule}"


def test_a_parameter_that_the_schema_does_not_name_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^Audit parameter zz are not allowed$"):
        complete_parameters(Dummy.schema, {"zz": 1})


def test_a_required_parameter_that_is_missing_is_named() -> None:
    with pytest.raises(Invalid, match="'maintenance_node' is a required property"):
        complete_parameters(HostMaintenance.schema, {})


def test_a_place_deep_in_the_parameters_is_named() -> None:
    with pytest.raises(Invalid, match=r"actions\.0: 'input_parameters' is a required property"):
        complete_parameters(Actuator.schema, {"actions": [{"action_type": "nop"}]})


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_column_can_hold_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"^parameters\.para2: must not hold "):
        complete_parameters(Dummy.schema, {"para2": text})


def test_parameters_without_a_bottom_are_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Invalid, match="nested deeper than 50 levels"):
        complete_parameters(Dummy.schema, {"para2": deep})


def test_an_enormous_value_is_not_repeated_in_full() -> None:
    with pytest.raises(Invalid) as refusal:
        complete_parameters(Dummy.schema, {"para1": "x" * 1_000_000})
    assert len(str(refusal.value)) < 400


def test_default_parameters_are_refused_in_their_own_words() -> None:
    with pytest.raises(Invalid, match=r"^Invalid default_parameters for strategy: para1: "):
        complete_parameters(Dummy.schema, {"para1": 20}, "default_parameters")
