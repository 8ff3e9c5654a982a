"""The fields that narrow an audit to a part of the cloud, with what the cloud has as their choices."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from audits.console.choices import Choices, compute_nodes, host_aggregates, zones
from audits.operations.scope import compute_rules, exclusions, storage_rules

ZONES, AGGREGATES, LEFT_OUT = "scope_zones", "scope_aggregates", "scope_left_out"


def boxes(label: str, help_text: str, choices: Choices) -> forms.Field:
    return forms.MultipleChoiceField(
        label=label, help_text=help_text, choices=choices, required=False, widget=forms.CheckboxSelectMultiple
    )


def scope_fields() -> dict[str, forms.Field]:
    """Return a field for each kind of object that the cloud has."""
    kinds = {
        ZONES: ("Availability zones", "Only the nodes in these zones; without any, all nodes.", zones()),
        AGGREGATES: ("Host aggregates", "Only their nodes, beside those of the zones.", host_aggregates()),
        LEFT_OUT: ("Nodes to leave out", "The audit does not see them, nor what is on them.", compute_nodes()),
    }
    return {name: boxes(*kind) for name, kind in kinds.items() if kind[-1]}


def scope_in_words(scope: list[Any]) -> list[str]:
    """Return a line for each kind of object that a scope includes, then for each that it excludes."""
    rules = [*compute_rules(scope), *storage_rules(scope)]
    included = [rule for rule in rules if "exclude" not in rule]
    return [*lines(included, "only"), *lines(exclusions(rules), "without")]


def lines(rules: Sequence[Mapping[str, Any]], how: str) -> list[str]:
    entries = {kind: entry for rule in rules for kind, entry in rule.items()}
    return [
        f"{how} {kind.replace('_', ' ')} {', '.join(str(value) for one in entry for value in one.values())}"
        for kind, entry in entries.items()
    ]


def scope_of(cleaned: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the scope that the fields describe: empty, where they narrow nothing."""
    rules = [
        {kind: [{"name": value} for value in cleaned[field]]}
        for field, kind in ((ZONES, "availability_zones"), (AGGREGATES, "host_aggregates"))
        if cleaned.get(field)
    ]
    if left_out := cleaned.get(LEFT_OUT):
        rules.append({"exclude": [{"compute_nodes": [{"name": value} for value in left_out]}]})
    return [{"compute": rules}] if rules else []
