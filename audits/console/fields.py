"""The fields of the form of a new audit for its scope and parameters, with objects of the cloud as choices."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.utils.formats import number_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from audits.models import Audit
from audits.operations.scope import compute_rules, exclusions, storage_rules
from cluster.models import ComputeNode, HostAggregate, Pool, StorageNode, VolumeType
from watcher_site.console.schema_fields import Choices, Formats
from watcher_site.messages import Text

ZONES, AGGREGATES, EXCLUDED_NODES = "scope_zones", "scope_aggregates", "scope_left_out"


def make_checkbox_field(label: Text, help_text: Text, choices: Choices) -> forms.Field:
    return forms.MultipleChoiceField(
        label=label, help_text=help_text, choices=choices, required=False, widget=forms.CheckboxSelectMultiple
    )


def scope_fields() -> dict[str, forms.Field]:
    """Return a field for each kind of object of which the cloud has any."""
    kinds = {
        ZONES: (_("Availability zones"), _("Only nodes in these zones. None selected: all nodes."), zones()),
        AGGREGATES: (
            _("Host aggregates"),
            _("Nodes of these aggregates, in addition to the zones."),
            host_aggregates(),
        ),
        EXCLUDED_NODES: (
            _("Excluded nodes"),
            _("The audit ignores these nodes and the servers on them."),
            compute_nodes(),
        ),
    }
    return {name: make_checkbox_field(*kind) for name, kind in kinds.items() if kind[-1]}


def describe_scope(scope: list[Any]) -> list[str]:
    """Return a line for each kind of object that a scope includes, and for each kind that it excludes."""
    rules = [*compute_rules(scope), *storage_rules(scope)]
    included = [rule for rule in rules if "exclude" not in rule]
    return [*describe_rules(included, gettext("only")), *describe_rules(exclusions(rules), gettext("except"))]


def describe_interval(audit: Audit) -> str | None:
    """Return the interval of an audit with its unit, or its cron expression."""
    if not audit.interval or not audit.schedule.period:
        return audit.interval
    return gettext("%(number)s seconds") % {"number": number_format(int(audit.interval))}


def describe_rules(rules: Sequence[Mapping[str, Any]], how: str) -> list[str]:
    entries = {kind: entry for rule in rules for kind, entry in rule.items()}
    return [
        f"{how} {kind.replace('_', ' ')} {', '.join(str(value) for item in entry for value in item.values())}"
        for kind, entry in entries.items()
    ]


def scope_of(cleaned: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the scope that the fields describe, by default empty."""
    rules = [
        {kind: [{"name": value} for value in cleaned[field]]}
        for field, kind in ((ZONES, "availability_zones"), (AGGREGATES, "host_aggregates"))
        if cleaned.get(field)
    ]
    if excluded := cleaned.get(EXCLUDED_NODES):
        rules.append({"exclude": [{"compute_nodes": [{"name": value} for value in excluded]}]})
    return [{"compute": rules}] if rules else []


# The states of a node that prevent it from receiving servers.
OBSTACLES = {"disabled": _("disabled"), "down": _("down"), "off": _("off")}


def compute_nodes() -> Choices:
    return [(node.hostname, describe_node(node)) for node in ComputeNode.objects.present()]


def describe_node(node: ComputeNode) -> str:
    """Return the name and zone of a node, with the states that prevent it from receiving servers."""
    obstacles = [OBSTACLES[state] for state in (node.status, node.state, node.power_state) if state in OBSTACLES]
    return ", ".join([_("%(node)s in %(zone)s") % {"node": node.hostname, "zone": node.zone}, *map(str, obstacles)])


def storage_pools() -> Choices:
    return [(name, name) for name in Pool.objects.present().values_list("name", flat=True)]


def volume_types() -> Choices:
    return [(name, name) for name in VolumeType.objects.present().values_list("name", flat=True)]


def host_aggregates() -> Choices:
    return [(name, name) for name in HostAggregate.objects.present().values_list("name", flat=True)]


def zones() -> Choices:
    """Return the availability zones of compute and of storage nodes."""
    models = (ComputeNode, StorageNode)
    names = {zone for model in models for zone in model.objects.present().order_by().values_list("zone", flat=True)}
    return [(zone, zone) for zone in sorted(names)]


# The choices for texts, by ``format`` in the schema of a strategy.
FORMATS: Formats = {
    "compute-node": compute_nodes,
    "storage-pool": storage_pools,
    "volume-type": volume_types,
}
