"""Decide which changes make a stack match a template, without reading any table.

A resource that a person marked (CHECK_FAILED) is always replaced, and so is one that failed otherwise, unless its
server is well: see docs/compatibility.md, "Stacks and stack resources". A resource in a nested stack, or a member of a
group, is replaced alone; if the nesting resource or the stack within is marked itself, everything in it is created
anew. A resource that only differs is changed in place where possible: a server is resized to another flavor, and
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
Wanted = Mapping[str, Any]
"""What a normalised template says of one resource."""
NEW = (StackStatus.INIT_COMPLETE, StackStatus.CREATE_FAILED)
RANDOM_LENGTH = 12
NAME_CHARACTERS = "abcdefghijklmnopqrstuvwxyz234567"
SERVER_PROPERTIES = ("flavor", "image", "metadata", "availability_zone", *server_properties.NAMES)


def decide(current: CurrentStack, template: Template) -> Decision:
    """Return how a root stack comes to be as a normalised template says."""
    decider = Decider()
    decider.decision.changes = decider.settle(current, template)
    return decider.decision


def decide_deletion(current: CurrentStack) -> Decision:
    """Return how all goes that is in a root stack."""
    return Decision(changes=deletions([current]))


def decide_replacement(resource: CurrentResource, stack: str, wanted: Wanted) -> Decision:
    """Return how one resource is replaced, whatever becomes of the rest.

    Args:
        stack: the name of the stack that it is in.
    """
    decider = Decider()
    decider.decision.changes = [decider.replace(resource, wanted, stack)]
    return decider.decision


class Decider:
    """Collects what a decision needs on its way down the tree."""

    def __init__(self) -> None:
        self.decision = Decision()

    def settle(self, current: CurrentStack, template: Template) -> list[Change]:
        """Return the changes by which a stack that stands comes to be as its template says."""
        self.decision.templates[current.uuid] = template
        changed: dict[str, Change] = {}
        for name, wanted in template["resources"].items():
            found = current.by_name.get(name)
            if found is None:
                uuid = self.add(current.uuid, name, wanted)
                changed[name] = self.create(uuid, name, wanted, current.name)
            elif change := self.change(found, wanted, current):
                changed[name] = change
        going = [resource for resource in current.resources if resource.name not in template["resources"]]
        return [*order_changes(changed, template), *removals(current, going, changed)]

    def add(self, stack: str, name: str, wanted: Wanted) -> str:
        resource = NewResource(str(uuid4()), stack, name, wanted["type"])
        self.decision.resources.append(resource)
        return resource.uuid

    def create(self, uuid: str, name: str, wanted: Wanted, stack: str, **options: Any) -> Change:
        """Return how a resource of a stack of this name is made that has nothing within yet."""
        options = {"kind": Kind.CREATE, **options}
        if wanted["type"] in StackResource.NESTING:
            options["nested"], options["steps"] = self.fill(uuid, name, wanted, stack)
        return Change(uuid=uuid, name=name, **options)

    def fill(self, parent: str, name: str, wanted: Wanted, stack: str) -> tuple[str, list[list[Change]]]:
        """Return the new stack within a resource, and how all that is in it is made."""
        template, ending = template_within(wanted), f"-{random_name()}"
        within = NewStack(str(uuid4()), f"{stack}-{name}"[: NAME_LENGTH - len(ending)] + ending, parent, template)
        self.decision.stacks.append(within)
        made = {
            one: self.create(self.add(within.uuid, one, its), one, its, within.name)
            for one, its in template["resources"].items()
        }
        return within.uuid, [order_changes(made, template)] if made else []

    def change(self, found: CurrentResource, wanted: Wanted, current: CurrentStack) -> Change | None:
        """Return how a resource that stands comes to be as is wanted; none, if it is so."""
        if found.is_made and current.is_marked and not found.is_marked:
            self.decision.marked.append(found.uuid)
        if found.is_made and (current.is_marked or found.is_marked or found.type != wanted["type"]):
            return self.replace(found, wanted, current.name)
        if wanted["type"] == Type.SERVER:
            return self.change_server(found, wanted, current.name)
        return self.change_nesting(found, wanted, current.name)

    def change_server(self, found: CurrentResource, wanted: Wanted, stack: str) -> Change | None:
        if not found.is_made:
            return self.create(found.uuid, found.name, wanted, stack, clearing=deletions(found.within))
        if not found.has_server or (found.is_failed and not found.is_well):
            return self.replace(found, wanted, stack)
        differing = parts_differing(found.properties, wanted["properties"])
        if not is_changeable(differing, wanted["properties"]):
            return self.replace(found, wanted, stack)
        if not (differing or found.is_failed or found.has_former or found.strays):
            return None
        clearing = deletions(found.strays)
        return Change(Kind.UPDATE, found.uuid, found.name, generation=found.generation, clearing=clearing)

    def change_nesting(self, found: CurrentResource, wanted: Wanted, stack: str) -> Change | None:
        if found.nested is None and not found.is_made:
            return self.create(found.uuid, found.name, wanted, stack)
        if found.nested is None or found.nested.is_marked:
            return self.replace(found, wanted, stack)
        steps, pause = self.steps_within(found.nested, wanted)
        clearing = deletions(found.strays)
        is_settled = not (found.is_failed or found.nested.is_failed or found.has_former or found.status in NEW)
        if is_settled and not (any(steps) or clearing) and found.properties == wanted["properties"]:
            return None
        kind = Kind.CREATE if found.status in NEW else Kind.UPDATE
        inner: dict[str, Any] = {"steps": steps, "pause": pause, "clearing": clearing, "nested": found.nested.uuid}
        return Change(kind, found.uuid, found.name, generation=found.generation, **inner)

    def steps_within(self, nested: CurrentStack, wanted: Wanted) -> tuple[list[list[Change]], float]:
        """Return in which steps what is within a resource comes to be as is wanted, and the pause between them."""
        order = sorted(nested.resources, key=lambda member: member.precedence)
        template = template_within(wanted, [one.name for one in order])
        changes = {change.uuid: change for change in self.settle(nested, template)}
        if wanted["type"] == Type.STACK:
            return [list(changes.values())], 0
        rolling = wanted["properties"]["rolling_update"]
        in_turn = [changes.pop(member.uuid) for member in order if member.uuid in changes]
        return batched(list(changes.values()), in_turn, rolling["max_batch_size"]), rolling["pause_time"]

    def replace(self, found: CurrentResource, wanted: Wanted, stack: str) -> Change:
        """Return how something new takes the place of what there is."""
        options = {"generation": found.generation + 1, "clearing": deletions(found.within)}
        return self.create(found.uuid, found.name, wanted, stack, kind=Kind.REPLACE, **options)


def deletions(stacks: Iterable[CurrentStack]) -> list[Change]:
    """Return how all goes that is in stacks."""
    return [change for stack in stacks for change in removals(stack, stack.resources, {})]


def removals(current: CurrentStack, going: Sequence[CurrentResource], changed: Mapping[str, Change]) -> list[Change]:
    """Return how some resources of a stack go, each after what is done to others that depended on it."""
    by_name = {resource.name: deletion(resource) for resource in going}
    everything = {**changed, **by_name}
    dependents = successors({resource.name: resource.depends_on for resource in current.resources})
    return [change for change in ordered(everything, nearest(dependents, everything)) if change.name in by_name]


def deletion(resource: CurrentResource) -> Change:
    step = deletions(resource.within)
    return Change(Kind.DELETE, resource.uuid, resource.name, steps=[step] if step else [])


def template_within(wanted: Mapping[str, Any], members: Sequence[str] = ()) -> Template:
    """Return the template of what is within a nesting resource.

    Args:
        members: the names of those that a group has, in the order in which they go. The last ones stay.
    """
    properties = wanted["properties"]
    if wanted["type"] == StackResource.Type.STACK:
        template: Template = properties["template"]
        return template
    size = properties["size"]
    staying = members[max(len(members) - size, 0) :]
    names = [*staying, *(random_name() for _ in range(size - len(staying)))]
    member = {**properties["member"], "depends_on": []}
    return {"version": 1, "description": "", "resources": dict.fromkeys(names, member)}


def batched(new: Sequence[Change], in_turn: Sequence[Change], size: int) -> list[list[Change]]:
    """Return the steps of a rolling update: new members come with the first, and members go with the last.

    Only what is changed or replaced is counted.

    Args:
        in_turn: what is done to the members that stand, in their order.
        size: how many are changed or replaced in one step.
    """
    coming = [*new, *(change for change in in_turn if change.kind == Kind.CREATE)]
    going = [change for change in in_turn if change.kind == Kind.DELETE]
    staying = [change for change in in_turn if change.kind in (Kind.UPDATE, Kind.REPLACE)]
    steps = [staying[start : start + size] for start in range(0, len(staying), size)] or [[]]
    steps[0] = [*coming, *steps[0]]
    steps[-1] = [*steps[-1], *going]
    return steps


def random_name() -> str:
    """Return a short name that no other member, or nested stack, has: of the kind that Heat makes."""
    return get_random_string(RANDOM_LENGTH, NAME_CHARACTERS)


def parts_differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return in which properties two descriptions of a server differ."""
    return [part for part in SERVER_PROPERTIES if (before.get(part) or None) != (after.get(part) or None)]


def is_changeable(differing: Sequence[str], after: Mapping[str, Any]) -> bool:
    """Return whether a server can be changed in place: its metadata, and by a resize or a rebuild, but not by both."""
    rest = [part for part in differing if part != "metadata"]
    return rest in ([], ["flavor"]) or (rest == ["image"] and bool(after["image"]))


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
