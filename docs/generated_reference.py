"""A Sphinx directive for the parts of the reference that are generated from the code.

``{reference} commands`` in a page inserts the usage of each command, ``{reference} action-types``, ``strategies`` and
``policy-types`` insert the parameters of each plug-in.
"""

import json
import os
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Reference(SphinxDirective):
    """A directive that inserts a generated part of the reference as Markdown."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        lines = PARTS[self.arguments[0]]()
        return self.parse_content_to_nodes_of(lines)

    def parse_content_to_nodes_of(self, lines: Iterable[str]) -> list[nodes.Node]:
        content = StringList([line for text in lines for line in text.splitlines()], source=self.get_source_info()[0])
        container = nodes.Element()
        self.state.nested_parse(content, self.content_offset, container, match_titles=True)
        return container.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("reference", Reference)
    app.connect("builder-inited", load_site)
    return {"parallel_read_safe": True}


def load_site(app: Sphinx) -> None:
    """Load the site without a database and with a key that nothing uses."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "watcher_site.settings")
    os.environ.setdefault("DATABASE_URL", "sqlite://:memory:")
    os.environ.setdefault("SECRET_KEY", secrets.token_urlsafe(64))
    os.environ["COLUMNS"] = "100"
    django.setup()


def describe_commands() -> Iterator[str]:
    from django.apps import apps
    from django.core.management import get_commands, load_command_class

    own = {config.name for config in apps.get_app_configs() if config.path.startswith(os.getcwd())}
    for name, app in sorted(get_commands().items()):
        if app in own:
            parser = load_command_class(app, name).create_parser("manage.py", name)
            yield f"## {name}\n\n```text\n{parser.format_help()}\n```\n"


def describe_plug_ins(setting: str) -> Iterator[str]:
    from watcher_site import plugins

    for name, plug_in in sorted(plugins.load(setting).items()):
        yield f"### {name}\n"
        yield f"{getattr(plug_in, 'description', '') or getattr(plug_in, 'display_name', '')}\n"
        yield from describe_schema(plug_in.schema)


def describe_schema(schema: dict[str, Any]) -> Iterator[str]:
    rows = list(describe_properties(schema))
    if rows:
        yield "| parameter | type | default | |\n| --- | --- | --- | --- |"
        yield from rows
    else:
        yield "It has no parameters."
    yield ""


def describe_properties(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Return a row of the table for each property, and for the properties of objects within."""
    required = schema.get("required", ())
    for name, rule in schema.get("properties", {}).items():
        default = "required" if name in required else quote(rule["default"]) if "default" in rule else ""
        yield f"| `{prefix}{name}` | {describe_type(rule)} | {default} | {rule.get('description', '')} |"
        yield from describe_properties(rule, f"{prefix}{name}.")


def describe_type(rule: dict[str, Any]) -> str:
    if "enum" in rule:
        return " or ".join(map(quote, rule["enum"]))
    kinds = rule.get("type", "any")
    text = " or ".join([kinds] if isinstance(kinds, str) else kinds)
    limits = [f"{word} {rule[key]}" for word, key in (("from", "minimum"), ("to", "maximum")) if key in rule]
    return " ".join([text, *limits])


def quote(value: Any) -> str:
    return f"`{json.dumps(value)}`"


PARTS = {
    "commands": describe_commands,
    "action-types": lambda: describe_plug_ins("ACTION_TYPES"),
    "strategies": lambda: describe_plug_ins("STRATEGIES"),
    "policy-types": lambda: describe_plug_ins("POLICY_TYPES"),
}
