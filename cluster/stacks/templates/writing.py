"""Templates of stacks written out for people to read and to change."""

from typing import Any

import yaml

from cluster.stacks.templates.documents import JSONLoader
from cluster.stacks.templates.templates import Template, normalise

LEFT_OUT: tuple[Any, ...] = (None, "", [], {})
# Wide enough that no text is broken into lines.
WIDTH = 10**6


class JSONDumper(yaml.SafeDumper):
    """YAML in which every text that another reader may take for something else is quoted."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for first, rules in JSONLoader.yaml_implicit_resolvers.items():
    for tag, pattern in rules:
        JSONDumper.add_implicit_resolver(tag, pattern, [first])


def written_out(template: Template) -> str:
    """Return a normalised template as YAML, without what may be left out since it is empty."""
    shown = without_empty(normalise(template))
    text: str = yaml.dump(shown, Dumper=JSONDumper, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


def without_empty(value: Any, name: str = "") -> Any:
    if not isinstance(value, dict) or name == "metadata":
        return value
    return {key: without_empty(one, key) for key, one in value.items() if key == "resources" or one not in LEFT_OUT}
