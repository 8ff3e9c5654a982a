"""The documentation of the policies says what their schemas say."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster.operations.policies import check_spec
from watcher_site import plugins

PAGE = (Path(__file__).parents[3] / "docs" / "policies.md").read_text()
SECTIONS = {text.partition("\n")[0]: text for text in PAGE.split("\n## ")[1:]}
TYPES = plugins.load("POLICY_TYPES")
NEEDED = "required"


def properties(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Give the properties that hold no others, by their dotted names, each with its default."""
    for name, rule in schema["properties"].items():
        if "properties" in rule:
            yield from properties(rule, f"{prefix}{name}.")
        else:
            default = f"`{json.dumps(rule['default'])}`" if "default" in rule else ""
            yield f"{prefix}{name}", NEEDED if name in schema.get("required", ()) else default


def test_every_type_has_its_section_and_nothing_else_has() -> None:
    assert SECTIONS.keys() == TYPES.keys()


@pytest.mark.parametrize("name", TYPES)
def test_the_properties_are_those_of_the_schema_with_their_defaults(name: str) -> None:
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.*?) ?\| ", SECTIONS[name], re.MULTILINE)
    assert dict(rows) == dict(properties(TYPES[name].schema))


@pytest.mark.parametrize("name", TYPES)
def test_the_example_can_be_made_a_policy(name: str) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", SECTIONS[name], re.DOTALL)
    check_spec(name, json.loads(example))


@pytest.mark.parametrize("name", TYPES)
def test_the_priority_is_documented(name: str) -> None:
    assert re.findall(r"Priority ([0-9]+)", SECTIONS[name]) == [str(TYPES[name].priority)]
