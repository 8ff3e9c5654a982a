"""The order of the resources of a stack, by their dependencies."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from cluster.stacks.decisions import Change, Template


def order_changes(changed: Mapping[str, Change], template: Template) -> list[Change]:
    """Return changes of the resources of a template, each after those that it depends on, also by way of others."""
    before = {name: wanted["depends_on"] for name, wanted in template["resources"].items()}
    return ordered(changed, nearest(before, changed))


def ordered(changed: Mapping[str, Change], before: Mapping[str, Iterable[str]]) -> list[Change]:
    return [
        replace(change, after=[changed[one].uuid for one in before.get(name, ())]) for name, change in changed.items()
    ]


def nearest(before: Mapping[str, Iterable[str]], chosen: Collection[str]) -> dict[str, list[str]]:
    """Return for each name those of the chosen ones that come next before it, directly or by way of others."""
    found: dict[str, dict[str, None]] = {}
    for name in TopologicalSorter(before).static_order():
        found[name] = {}
        for one in before.get(name, ()):
            found[name].update({one: None} if one in chosen else found[one])
    return {name: list(names) for name, names in found.items()}


def successors(before: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return for each name those that it comes before."""
    after: dict[str, list[str]] = {name: [] for name in before}
    for name, names in before.items():
        for one in names:
            after.setdefault(one, []).append(name)
    return after
