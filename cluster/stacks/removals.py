"""Changes that delete resources of a stack: each after all that depend on it."""

from collections.abc import Iterable, Mapping, Sequence

from cluster.stacks.current import CurrentResource, CurrentStack
from cluster.stacks.decisions import Change, Kind
from cluster.stacks.graph import nearest, ordered, successors


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
