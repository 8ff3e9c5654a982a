"""A Sphinx directive for the parts of the reference that are generated from the code.

``{reference} commands`` in a page inserts the usage of each command; ``action-types``, ``strategies``, ``goals``,
``planners``, ``scoring-engines`` and ``policy-types`` insert a description of each plug-in with its parameters, and
``metrics`` the table of all metrics.
"""

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
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
        content = StringList(
            [line for text in lines for line in text.splitlines() or [""]], source=self.get_source_info()[0]
        )
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
            command = load_command_class(app, name)
            parser = command.create_parser("manage.py", name)
            yield f"### {name}\n\n```text\n{parser.format_help()}\n```\n"
            for subparser in getattr(command, "parsers", {}).values():
                yield f"```text\n{subparser.format_help()}\n```\n"


def describe_action_types() -> Iterator[str]:
    from django.conf import settings

    from watcher_site import plugins

    for name, action_type in sorted(plugins.load("ACTION_TYPES").items()):
        yield f"### {name}\n\n{as_sentence(action_type.description)}\n"
        weight, at_once = settings.PLANNER_WEIGHTS.get(name), settings.PLANNER_PARALLELIZATION.get(name, 1)
        if weight is not None:
            yield f"Planner weight {weight}, parallelization {at_once}.\n"
        yield from describe_schema(action_type.schema)


def describe_metrics() -> Iterator[str]:
    from watcher_site.monitoring.exposition import all_metrics

    yield "| metric | type | labels | |\n| --- | --- | --- | --- |"
    for metric in all_metrics():
        name = f"{metric.name}_total" if metric.kind == "counter" else metric.name
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{name}` | {metric.kind} | {labels} | {metric.text} |"


def describe_strategies() -> Iterator[str]:
    from watcher_site import plugins
    from watcher_site.validation import with_defaults

    for name, strategy in sorted(plugins.load("STRATEGIES").items()):
        plug_in, defaults = strategy(), with_defaults(strategy.schema, {})
        read = {reading.metric for reading in plug_in.readings(defaults).values()}
        yield f"### {name}\n\n{as_sentence(strategy.display_name)}\n"
        yield from describe_facts(
            {
                "Goal": [strategy.goal],
                "Planner": [strategy.planner],
                "Data models": plug_in.models(defaults),
                "Required metrics": strategy.metrics,
                "Optional metrics": sorted(read - set(strategy.metrics)),
            }
        )
        yield from describe_schema(strategy.schema)


def describe_goals() -> Iterator[str]:
    from audits.goals import GOALS
    from watcher_site import plugins

    strategies = plugins.load("STRATEGIES").values()
    yield "| goal | display name | strategies |\n| --- | --- | --- |"
    for goal in GOALS.values():
        names = list_names(strategy.name for strategy in strategies if strategy.goal == goal.name)
        yield f"| `{goal.name}` | {goal.display_name} | {names} |"
    yield ""
    yield "| goal | efficacy indicator | type | |\n| --- | --- | --- | --- |"
    for goal in GOALS.values():
        for indicator in goal.indicators:
            optional = "" if indicator.required else " Optional."
            kind = describe_type(indicator.schema or {})
            yield f"| `{goal.name}` | `{indicator.name}` | {kind} | {as_sentence(indicator.description)}{optional} |"
    yield ""
    yield "| goal | global efficacy | percentage | |\n| --- | --- | --- | --- |"
    for goal in GOALS.values():
        for ratio in goal.ratios:
            formula = f"`{ratio.part}` / `{ratio.whole}`"
            yield f"| `{goal.name}` | `{ratio.name}` | {formula} | {as_sentence(ratio.description)} |"
    yield ""


def describe_planners() -> Iterator[str]:
    from audits.planner import PLANNERS
    from watcher_site import plugins

    strategies = plugins.load("STRATEGIES").values()
    yield "| planner | | strategies |\n| --- | --- | --- |"
    for name, planner in PLANNERS.items():
        summary = (planner.__doc__ or "").split("\n", 1)[0]
        users = list_names(sorted(strategy.name for strategy in strategies if strategy.planner == name))
        yield f"| `{name}` | {summary} | {users} |"
    yield ""


def describe_scoring_engines() -> Iterator[str]:
    from watcher_site import plugins

    yield "| scoring engine | | metainfo |\n| --- | --- | --- |"
    for name, engine in plugins.load("SCORING_ENGINES").items():
        yield f"| `{name}` | {as_sentence(engine.description)} | {f'`{engine.metainfo}`' if engine.metainfo else ''} |"
    yield ""


def describe_policy_types() -> Iterator[str]:
    from watcher_site import plugins

    for name, policy_type in sorted(plugins.load("POLICY_TYPES").items()):
        yield f"### {name}\n\n{as_sentence(policy_type.description)}\n"
        number = "one policy" if policy_type.is_single else "several policies"
        yield f"Default priority {policy_type.priority}; {number} of this type per cluster.\n"
        yield from describe_facts(
            {f"Evaluated {when.lower()}": sorted(targets) for when, targets in policy_type.targets.items()}
        )
        yield from describe_schema(policy_type.schema)


def describe_facts(facts: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Return a list of properties with names as values, without those that have none."""
    for label, values in facts.items():
        if names := list_names(values):
            yield f"- {label}: {names}"
    yield ""


def describe_schema(schema: Mapping[str, Any]) -> Iterator[str]:
    rows = list(describe_properties(schema))
    if rows:
        yield "| parameter | type | default | |\n| --- | --- | --- | --- |"
        yield from rows
    else:
        yield "It has no parameters."
    yield ""


def describe_properties(schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Return a row of the table for each property, and for the properties of objects and of objects in lists."""
    required = schema.get("required", ())
    for name, rule in schema.get("properties", {}).items():
        default = "required" if name in required else quote(rule["default"]) if "default" in rule else ""
        text = as_sentence(rule.get("description", ""))
        yield f"| `{prefix}{name}` | {describe_type(rule)} | {default} | {text} |"
        yield from describe_properties(rule, f"{prefix}{name}.")
        yield from describe_properties(rule.get("items", {}), f"{prefix}{name}[].")


def describe_type(rule: Mapping[str, Any]) -> str:
    if "enum" in rule:
        return " or ".join(quote(value) for value in rule["enum"])
    if rule.get("pattern", "").startswith("^[0-9a-fA-F]{8}-"):
        return "UUID"
    kinds = rule.get("type", "any")
    text = " or ".join([kinds] if isinstance(kinds, str) else kinds)
    if "array" in kinds and (items := rule.get("items")):
        text = text.replace("array", f"array of {describe_type(items)}")
    limits = [f"{word} {rule[key]}" for key, word in LIMITS.items() if key in rule]
    return " ".join([text, *limits])


def as_sentence(text: str) -> str:
    """Return a text with a capital letter at the beginning and a full stop at the end, unless it is empty."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def list_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def quote(value: Any) -> str:
    return f"`{json.dumps(value)}`"


LIMITS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to"}
PARTS = {
    "commands": describe_commands,
    "action-types": describe_action_types,
    "strategies": describe_strategies,
    "goals": describe_goals,
    "planners": describe_planners,
    "scoring-engines": describe_scoring_engines,
    "policy-types": describe_policy_types,
    "metrics": describe_metrics,
}
