"""Decisions on the changes by which a stack matches a template, without queries.

A resource that a user marked (CHECK_FAILED) is always replaced; a resource that failed otherwise is replaced unless
its server is healthy (docs/compatibility.md, "Stacks and stack resources"). A resource in a nested stack, or a member
of a group, is replaced alone. If the nesting resource or the stack within is marked itself, all its content is created
again. A resource with other properties is changed in place if possible: a server is resized to another flavor, and
rebuilt from another image.

Members of a scaling group are removed and replaced in the order of docs/compatibility.md, "Order of group members".
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any
from uuid import uuid4

from django.utils.crypto import get_random_string

from cluster.drivers import server_properties
from cluster.models import StackResource, StackStatus
from cluster.models.stacks import NAME_LENGTH
from cluster.stacks.current import CurrentResource, CurrentStack
from cluster.stacks.decisions import Change, Decision, Kind, NewResource, NewStack, Template

Type = StackResource.Type
Desired = Mapping[str, Any]
"""The description of a resource in a normalised template."""
NOT_CREATED = (StackStatus.INIT_COMPLETE, StackStatus.CREATE_FAILED)
RANDOM_LENGTH = 12
NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyz234567"
SERVER_PROPERTIES = ("flavor", "image", "metadata", "availability_zone", *server_properties.NAMES)


def decide(current: CurrentStack, template: Template) -> Decision:
    """Return the decision by which a root stack matches a normalised template."""
    decider = Decider()
    decider.decision.changes = decider.plan_stack(current, template)
    return decider.decision


def decide_deletion(current: CurrentStack) -> Decision:
    """Return the decision by which all resources of a root stack are deleted."""
    return Decision(changes=deletions([current]))


def decide_replacement(resource: CurrentResource, stack: str, desired: Desired) -> Decision:
    """Return the decision by which one resource is replaced.

    Args:
        stack: the name of its stack.
    """
    decider = Decider()
    decider.decision.changes = [decider.plan_replacement(resource, desired, stack)]
    return decider.decision


class Decider:
    """Builds a decision by a traversal of the tree."""

    def __init__(self) -> None:
        self.decision = Decision()

    def plan_stack(self, current: CurrentStack, template: Template) -> list[Change]:
        """Return the changes by which an existing stack matches its template."""
        self.decision.templates[current.uuid] = template
        changed: dict[str, Change] = {}
        for name, desired in template["resources"].items():
            current_resource = current.by_name.get(name)
            if current_resource is None:
                uuid = self.add_resource(current.uuid, name, desired)
                changed[name] = self.plan_creation(uuid, name, desired, current.name)
            elif change := self.plan_change(current_resource, desired, current):
                changed[name] = change
        removed = [resource for resource in current.resources if resource.name not in template["resources"]]
        return [*order_changes(changed, template), *removals(current, removed, changed)]

    def add_resource(self, stack: str, name: str, desired: Desired) -> str:
        resource = NewResource(str(uuid4()), stack, name, desired["type"])
        self.decision.resources.append(resource)
        return resource.uuid

    def plan_creation(self, uuid: str, name: str, desired: Desired, stack: str, **options: Any) -> Change:
        """Return the change that creates a resource in the stack with this name."""
        options = {"kind": Kind.CREATE, **options}
        if desired["type"] in StackResource.NESTING:
            options["nested"], options["steps"] = self.add_nested_stack(uuid, name, desired, stack)
        return Change(uuid=uuid, name=name, **options)

    def add_nested_stack(self, parent: str, name: str, desired: Desired, stack: str) -> tuple[str, list[list[Change]]]:
        """Add a stack within a resource to the decision; return its UUID and the changes that create its content."""
        template, ending = nested_template(desired), f"-{random_name()}"
        within = NewStack(str(uuid4()), f"{stack}-{name}"[: NAME_LENGTH - len(ending)] + ending, parent, template)
        self.decision.stacks.append(within)
        creations = {
            key: self.plan_creation(self.add_resource(within.uuid, key, resource), key, resource, within.name)
            for key, resource in template["resources"].items()
        }
        return within.uuid, [order_changes(creations, template)] if creations else []

    def plan_change(self, resource: CurrentResource, desired: Desired, current: CurrentStack) -> Change | None:
        """Return the change by which an existing resource matches its description, or None if it does."""
        if resource.is_made and current.is_marked and not resource.is_marked:
            self.decision.marked.append(resource.uuid)
        if resource.is_made and (current.is_marked or resource.is_marked or resource.type != desired["type"]):
            return self.plan_replacement(resource, desired, current.name)
        if desired["type"] == Type.SERVER:
            return self.plan_server_change(resource, desired, current.name)
        return self.plan_nesting_change(resource, desired, current.name)

    def plan_server_change(self, resource: CurrentResource, desired: Desired, stack: str) -> Change | None:
        if not resource.is_made:
            return self.plan_creation(
                resource.uuid, resource.name, desired, stack, clearing=deletions(resource.within)
            )
        if not resource.has_server or (resource.is_failed and not resource.is_well):
            return self.plan_replacement(resource, desired, stack)
        differing = changed_properties(resource.properties, desired["properties"])
        if not is_changeable(differing, desired["properties"]):
            return self.plan_replacement(resource, desired, stack)
        if not (differing or resource.is_failed or resource.has_former or resource.strays):
            return None
        clearing = deletions(resource.strays)
        return Change(Kind.UPDATE, resource.uuid, resource.name, generation=resource.generation, clearing=clearing)

    def plan_nesting_change(self, resource: CurrentResource, desired: Desired, stack: str) -> Change | None:
        if resource.nested is None and not resource.is_made:
            return self.plan_creation(resource.uuid, resource.name, desired, stack)
        if resource.nested is None or resource.nested.is_marked:
            return self.plan_replacement(resource, desired, stack)
        steps, pause = self.steps_within(resource.nested, desired)
        clearing = deletions(resource.strays)
        is_settled = not (
            resource.is_failed or resource.nested.is_failed or resource.has_former or resource.status in NOT_CREATED
        )
        if is_settled and not (any(steps) or clearing) and resource.properties == desired["properties"]:
            return None
        kind = Kind.CREATE if resource.status in NOT_CREATED else Kind.UPDATE
        inner: dict[str, Any] = {"steps": steps, "pause": pause, "clearing": clearing, "nested": resource.nested.uuid}
        return Change(kind, resource.uuid, resource.name, generation=resource.generation, **inner)

    def steps_within(self, nested: CurrentStack, desired: Desired) -> tuple[list[list[Change]], float]:
        """Return the steps by which a nested stack matches its description, and the pause between them."""
        order = sorted(nested.resources, key=lambda member: member.precedence)
        template = nested_template(desired, [resource.name for resource in order])
        changes = {change.uuid: change for change in self.plan_stack(nested, template)}
        if desired["type"] == Type.STACK:
            return [list(changes.values())], 0
        rolling = desired["properties"]["rolling_update"]
        in_turn = [changes.pop(member.uuid) for member in order if member.uuid in changes]
        return make_batches(list(changes.values()), in_turn, rolling["max_batch_size"]), rolling["pause_time"]

    def plan_replacement(self, resource: CurrentResource, desired: Desired, stack: str) -> Change:
        """Return the change that replaces a resource."""
        options = {"generation": resource.generation + 1, "clearing": deletions(resource.within)}
        return self.plan_creation(resource.uuid, resource.name, desired, stack, kind=Kind.REPLACE, **options)


def deletions(stacks: Iterable[CurrentStack]) -> list[Change]:
    """Return the changes that delete all resources of stacks."""
    return [change for stack in stacks for change in removals(stack, stack.resources, {})]


def removals(current: CurrentStack, removed: Sequence[CurrentResource], changed: Mapping[str, Change]) -> list[Change]:
    """Return the changes that delete some resources of a stack, each after the changes of its dependents."""
    by_name = {resource.name: deletion(resource) for resource in removed}
    everything = {**changed, **by_name}
    dependents = successors({resource.name: resource.depends_on for resource in current.resources})
    return [
        change
        for change in with_predecessors(everything, nearest_predecessors(dependents, everything))
        if change.name in by_name
    ]


def deletion(resource: CurrentResource) -> Change:
    step = deletions(resource.within)
    return Change(Kind.DELETE, resource.uuid, resource.name, steps=[step] if step else [])


def nested_template(desired: Mapping[str, Any], members: Sequence[str] = ()) -> Template:
    """Return the template of the stack within a nesting resource.

    Args:
        members: the names of the members of a group in the order of removal. The last ones stay.
    """
    properties = desired["properties"]
    if desired["type"] == StackResource.Type.STACK:
        template: Template = properties["template"]
        return template
    size = properties["size"]
    staying = members[max(len(members) - size, 0) :]
    names = [*staying, *(random_name() for _ in range(size - len(staying)))]
    member = {**properties["member"], "depends_on": []}
    return {"version": 1, "description": "", "resources": dict.fromkeys(names, member)}


def make_batches(new: Sequence[Change], in_turn: Sequence[Change], size: int) -> list[list[Change]]:
    """Return the steps of a rolling update: the first step adds new members, and the last one removes members.

    Args:
        in_turn: the changes of existing members in order.
        size: the number of members that one step changes or replaces.
    """
    coming = [*new, *(change for change in in_turn if change.kind == Kind.CREATE)]
    removed = [change for change in in_turn if change.kind == Kind.DELETE]
    staying = [change for change in in_turn if change.kind in (Kind.UPDATE, Kind.REPLACE)]
    steps = [staying[start : start + size] for start in range(0, len(staying), size)] or [[]]
    steps[0] = [*coming, *steps[0]]
    steps[-1] = [*steps[-1], *removed]
    return steps


def random_name() -> str:
    """Return a random name of a member or a nested stack, in the format of Heat."""
    return get_random_string(RANDOM_LENGTH, NAME_CHARACTERS)


def changed_properties(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the names of the properties in which two descriptions of a server differ."""
    return [part for part in SERVER_PROPERTIES if (before.get(part) or None) != (after.get(part) or None)]


def is_changeable(differing: Sequence[str], after: Mapping[str, Any]) -> bool:
    """Return whether a server can be changed in place: its metadata, and either its flavor or its image."""
    properties = [part for part in differing if part != "metadata"]
    return properties in ([], ["flavor"]) or (properties == ["image"] and bool(after["image"]))


def order_changes(changed: Mapping[str, Change], template: Template) -> list[Change]:
    """Return changes of a template's resources, each after the changes on which it depends, even indirectly."""
    before = {name: desired["depends_on"] for name, desired in template["resources"].items()}
    return with_predecessors(changed, nearest_predecessors(before, changed))


def with_predecessors(changed: Mapping[str, Change], before: Mapping[str, Iterable[str]]) -> list[Change]:
    return [
        replace(change, after=[changed[predecessor].uuid for predecessor in before.get(name, ())])
        for name, change in changed.items()
    ]


def nearest_predecessors(before: Mapping[str, Iterable[str]], chosen: Collection[str]) -> dict[str, list[str]]:
    """Return the nearest chosen predecessors of each name, through predecessors that are not chosen."""
    nearest: dict[str, dict[str, None]] = {}
    for name in TopologicalSorter(before).static_order():
        nearest[name] = {}
        for predecessor in before.get(name, ()):
            nearest[name].update({predecessor: None} if predecessor in chosen else nearest[predecessor])
    return {name: list(names) for name, names in nearest.items()}


def successors(before: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the successors of each name."""
    after: dict[str, list[str]] = {name: [] for name in before}
    for name, names in before.items():
        for predecessor in names:
            after.setdefault(predecessor, []).append(name)
    return after
