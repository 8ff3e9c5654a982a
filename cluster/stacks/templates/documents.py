"""Templates of stacks as people read and write them: JSON or YAML, of which only what JSON can say is taken."""

import re
from typing import Any

import yaml

from cluster.json_lines import NotJSON, parse_document, read_integer
from watcher_site.database.text import DEEPEST, require_storable
from watcher_site.refusals import Invalid

LARGEST = 512 * 1024
"""How many bytes the text of a template has at most, as Heat has it by default."""
# libyaml's parser where it is installed: the other one needs seconds for the largest template.
Fastest: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
PREFIX = "tag:yaml.org,2002:"
# Wide enough that no text is broken into lines.
WIDTH = 10**6


class JSONLoader(Fastest):
    """YAML whose plain scalars mean what they mean in YAML 1.2's core schema: all that JSON has, and nothing else.

    So a date, ``yes`` and ``.nan`` are texts. There are no merge keys.
    """

    yaml_implicit_resolvers: dict[Any, Any] = {}
    yaml_constructors: dict[Any, Any] = {}

    def construct_pairs_once(self, node: Any) -> dict[str, Any]:
        """Return the object of a mapping node. Raises: `Invalid` for names that are no texts, or stand there twice."""
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise Invalid(f"template: line {key.start_mark.line + 1}: a name must be a text.")
            if key.value in found:
                raise Invalid(f"template: line {key.start_mark.line + 1}: {key.value} stands there twice.")
            found[key.value] = self.construct_object(value, deep=True)
        return found

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
    """Return what a text in JSON, or else in YAML, says.

    Raises:
        Invalid: it is too large or neither, or its YAML has what JSON has not: anchors, aliases, tags, several
            documents. The message names the line. Names that stand twice in an object of JSON are left to
            `cluster.json_lines.check_values`.
    """
    require_storable("template", text)
    refuse_large(text)
    try:
        return parse_document(text.encode())[1]
    except NotJSON:
        return read_yaml(text)


def refuse_large(text: str) -> None:
    if len(text.encode()) > LARGEST:
        raise Invalid(f"template: must not have more than {LARGEST} bytes.")


def read_yaml(text: str) -> Any:
    try:
        refuse_what_json_has_not(text)
        return yaml.load(text, Loader=JSONLoader)  # noqa: S506 (it makes nothing but JSON values)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise Invalid(f"template: {where}is neither JSON nor YAML: {problem.problem or problem.context}.") from problem
    except yaml.YAMLError as problem:
        raise Invalid("template: is neither JSON nor YAML: it holds characters that neither may have.") from problem


def refuse_what_json_has_not(text: str) -> None:
    """Look at each part of a document before any is made: a small one with aliases may stand for an endless one.

    Raises:
        Invalid: it has anchors, aliases or tags, is nested too deeply, or is followed by another document.
    """
    depth = documents = 0
    for event in yaml.parse(text, Loader=Fastest):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Invalid(f"template: line {line}: anchors and aliases are not taken.")
        if getattr(event, "tag", None):
            raise Invalid(f"template: line {line}: tags are not taken.")
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise too_deep()
        if documents > 1:
            raise Invalid(f"template: line {line}: there must be one document.")


def too_deep() -> Invalid:
    return Invalid(f"template: must not be nested deeper than {DEEPEST} levels.")


class JSONDumper(yaml.SafeDumper):
    """YAML in which every text that another reader may take for something else is quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for first, rules in JSONLoader.yaml_implicit_resolvers.items():
    for tag, pattern in rules:
        JSONDumper.add_implicit_resolver(tag, pattern, [first])


def write_document(value: Any) -> str:
    """Return a JSON value as YAML."""
    text: str = yaml.dump(value, Dumper=JSONDumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text
