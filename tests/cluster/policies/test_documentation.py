"""The documentation of the policies agrees with their schemas."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster.operations.policies import check_spec
from tests.documentation.blocks import find_blocks
from watcher_site import plugins

PAGE = (Path(__file__).parents[3] / "docs" / "policies.md").read_text()
SECTIONS = {text.partition("\n")[0]: text for text in PAGE.split("\n## ")[1:]}
TYPES = plugins.load("POLICY_TYPES")
EXAMPLES = find_blocks("docs/policies.md", "# Policies", language="json")
NEEDED = "required"


def properties(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted name and the default of each property without properties of its own."""
    for name, rule in schema["properties"].items():
        if "properties" in rule:
            yield from properties(rule, f"{prefix}{name}.")
        else:
            default = f"`{json.dumps(rule['default'])}`" if "default" in rule else ""
            yield f"{prefix}{name}", NEEDED if name in schema.get("required", ()) else default


def test_each_policy_type_has_one_section() -> None:
    assert SECTIONS.keys() == TYPES.keys()


@pytest.mark.parametrize("name", TYPES)
def test_documented_properties_and_defaults_equal_the_schema(name: str) -> None:
    rows = re.findall(r"^\| `([a-z_.]+)` \| (.*?) ?\| ", SECTIONS[name], re.MULTILINE)
    assert dict(rows) == dict(properties(TYPES[name].schema))


@pytest.mark.parametrize("name", TYPES)
def test_documented_example_is_a_valid_spec(name: str) -> None:
    (example,) = [block for block in EXAMPLES if f"## {name}" in block.headings]
    check_spec(name, json.loads(example.text))


@pytest.mark.parametrize("name", TYPES)
def test_priority_is_documented(name: str) -> None:
    assert re.findall(r"Priority ([0-9]+)", SECTIONS[name]) == [str(TYPES[name].priority)]
