"""Templates written out for people: read again, they say the same."""

from cluster.stacks.templates.templates import format_template, normalise

# What readers of YAML 1.1, or of 1.2, take for no texts.
TEXTS = ["yes", "1e3", "08", "0x1f", "1_000", "~", "", "2026-11-21", ".5", "1:30", "null", "<<", "*a", "é\n: #", "- b"]


def test_a_template_that_is_written_out_says_the_same() -> None:
    properties = {"flavor": "1", "metadata": {**{text: text for text in TEXTS if text}, "empty": ""}}
    server = {"type": "server", "properties": properties}
    pool = {"type": "scaling_group", "properties": {"size": 2, "member": server}, "depends_on": "web"}
    inner = {"type": "stack", "properties": {"template": {"resources": {}}}}
    template = normalise({"description": "é", "resources": {"web": server, "pool": pool, "inner": inner}})
    assert normalise(format_template(template)) == template


def test_what_is_empty_is_left_out() -> None:
    template = normalise({"resources": {"web": {"type": "server", "properties": {"flavor": "small"}}}})
    assert format_template(template) == (
        "version: 1\nresources:\n  web:\n    type: server\n    properties:\n      flavor: small\n"
    )
