"""Decide which changes make a stack match a template, without reading any table.

A resource that a person marked (CHECK_FAILED) is always replaced, and so is one that failed otherwise, unless its
server is well: see docs/compatibility.md, "Stacks and stack resources". A resource in a nested stack, or a member of a
group, is replaced alone; if the nesting resource or the stack within is marked itself, everything in it is created
anew. A resource that only differs is changed in place where possible: a server is resized to another flavor, and
rebuilt from another image.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from cluster.models import StackResource, StackStatus
from cluster.models.stacks import NAME_LENGTH
from cluster.stacks.current import CurrentResource, CurrentStack
from cluster.stacks.decisions import Change, Decision, Kind, NewResource, NewStack, Template
from cluster.stacks.graph import nearest, order_changes, ordered, successors
from cluster.stacks.groups import batched, template_within
from cluster.stacks.names import random_name
from cluster.stacks.servers import is_changeable, parts_differing

Type = StackResource.Type
Wanted = Mapping[str, Any]
"""What a normalised template says of one resource."""
NEW = (StackStatus.INIT_COMPLETE, StackStatus.CREATE_FAILED)


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
