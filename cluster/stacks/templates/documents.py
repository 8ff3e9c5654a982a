"""Parsing and formatting of templates as JSON or as YAML that is restricted to JSON values."""

import re
from typing import Any

import yaml

from cluster import messages
from cluster.json_lines import NotJSON, parse_document, read_integer
from watcher_site.database.text import DEEPEST, require_storable
from watcher_site.refusals import Invalid

MAX_BYTES = 512 * 1024
"""The maximum size of a template in bytes, as by default in Heat."""
# libyaml's parser if it is installed: the other one needs seconds for the largest template.
FastestLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PREFIX = "tag:yaml.org,2002:"
# Prevents line breaks in texts.
WIDTH = 10**6


class JSONLoader(FastestLoader):
    """A YAML loader with the plain scalars of YAML 1.2's core schema, restricted to JSON values.

    A date, ``yes`` and ``.nan`` are texts. Merge keys are not supported.
    """

    yaml_implicit_resolvers: dict[Any, Any] = {}
    yaml_constructors: dict[Any, Any] = {}

    def construct_pairs_once(self, node: Any) -> dict[str, Any]:
        """Return the object of a mapping node. Raises: `Invalid` for names that are not texts, or are repeated."""
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise Invalid(messages.NAME_NO_TEXT.fill(line=key.start_mark.line + 1))
            if key.value in mapping:
                raise Invalid(messages.NAME_TWICE.fill(line=key.start_mark.line + 1, name=key.value))
            mapping[key.value] = self.construct_object(value, deep=True)
        return mapping

    def construct_items(self, node: Any) -> list[Any]:
        return [self.construct_object(item, deep=True) for item in node.value]

    def construct_whole_number(self, node: Any) -> int | float:
        return read_integer(node.value)

    def construct_number(self, node: Any) -> float:
        return float(node.value)

    def construct_truth(self, node: Any) -> bool:
        return bool(node.value.lower() == "true")

    def construct_nothing(self, node: Any) -> None:
        return None


for tag, pattern, first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    JSONLoader.add_implicit_resolver(PREFIX + tag, re.compile(rf"(?:{pattern})\Z"), list(first))
for tag, constructor in {
    "map": JSONLoader.construct_pairs_once,
    "seq": JSONLoader.construct_items,
    "str": JSONLoader.construct_scalar,
    "bool": JSONLoader.construct_truth,
    "int": JSONLoader.construct_whole_number,
    "float": JSONLoader.construct_number,
    "null": JSONLoader.construct_nothing,
}.items():
    JSONLoader.add_constructor(PREFIX + tag, constructor)


def read_document(text: str) -> Any:
    """Return the value of a text in JSON, else in YAML.

    Repeated names in JSON objects are found by `cluster.json_lines.check_values`.

    Raises:
        Invalid: the text is too large, or neither JSON nor YAML, or its YAML has anchors, aliases, tags or several
            documents. The message names the line.
    """
    require_storable("template", text)
    refuse_large(text)
    try:
        return parse_document(text.encode())[1]
    except NotJSON:
        return read_yaml(text)


def refuse_large(text: str) -> None:
    if len(text.encode()) > MAX_BYTES:
        raise Invalid(messages.TEMPLATE_SIZE.fill(number=MAX_BYTES))


def read_yaml(text: str) -> Any:
    try:
        refuse_yaml_extensions(text)
        return yaml.load(text, Loader=JSONLoader)  # noqa: S506 (it makes nothing but JSON values)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        reason = problem.problem or problem.context
        raise Invalid(
            messages.NEITHER_FORMAT_AT.fill(line=mark.line + 1, reason=reason)
            if mark
            else messages.NEITHER_FORMAT.fill(reason=reason)
        ) from problem
    except yaml.YAMLError as problem:
        raise Invalid(messages.FORBIDDEN_CHARACTERS.text) from problem


def refuse_yaml_extensions(text: str) -> None:
    """Check a document before its values are created, because aliases can expand to enormous values.

    Raises:
        Invalid: it has anchors, aliases or tags, is nested too deeply, or is followed by another document.
    """
    depth = documents = 0
    for event in yaml.parse(text, Loader=FastestLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Invalid(messages.YAML_ANCHORS.fill(line=line))
        if getattr(event, "tag", None):
            raise Invalid(messages.YAML_TAGS.fill(line=line))
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise too_deep()
        if documents > 1:
            raise Invalid(messages.YAML_DOCUMENTS.fill(line=line))


def too_deep() -> Invalid:
    return Invalid(messages.NESTED_TOO_DEEPLY.fill(number=DEEPEST))


class JSONDumper(yaml.SafeDumper):
    """A YAML dumper that quotes every text which another parser may interpret differently."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for first, rules in JSONLoader.yaml_implicit_resolvers.items():
    for tag, pattern in rules:
        JSONDumper.add_implicit_resolver(tag, pattern, [first])


def write_document(value: Any) -> str:
    """Return a JSON value as YAML."""
    text: str = yaml.dump(value, Dumper=JSONDumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text
