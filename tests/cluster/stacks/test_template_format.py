"""Templates formatted as YAML are equal to the original after parsing."""

from cluster.stacks.templates.templates import format_template, normalise

# Texts that parsers of YAML 1.1 or 1.2 read as other types unless quoted.
TEXTS = ["yes", "1e3", "08", "0x1f", "1_000", "~", "", "2026-11-21", ".5", "1:30", "null", "<<", "*a", "é\n: #", "- b"]


def test_formatted_template_is_equal_after_parsing() -> None:
    properties = {"flavor": "1", "metadata": {**{text: text for text in TEXTS if text}, "empty": ""}}
    server = {"type": "server", "properties": properties}
    pool = {"type": "scaling_group", "properties": {"size": 2, "member": server}, "depends_on": "web"}
    inner = {"type": "stack", "properties": {"template": {"resources": {}}}}
    template = normalise({"description": "é", "resources": {"web": server, "pool": pool, "inner": inner}})
    assert normalise(format_template(template)) == template


def test_empty_values_are_omitted() -> None:
    template = normalise({"resources": {"web": {"type": "server", "properties": {"flavor": "small"}}}})
    assert format_template(template) == (
        "version: 1\nresources:\n  web:\n    type: server\n    properties:\n      flavor: small\n"
    )
