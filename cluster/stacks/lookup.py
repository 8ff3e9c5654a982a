"""The lookup of stacks and their resources by name or identifier."""

from typing import Any

from django.db.models import Q, QuerySet

from cluster.models import Stack, StackResource
from watcher_site.database.records import parse_uuid
from watcher_site.refusals import Invalid, NotFound


def stacks_named(stacks: QuerySet[Any], identifier: str) -> QuerySet[Any]:
    """Select a stack by UUID, else by name. Existing stacks take precedence over deleted ones.

    Raises:
        Invalid: several stacks have the name.
    """
    uuid = parse_uuid(identifier)
    if uuid is not None and stacks.filter(uuid=uuid).exists():
        return stacks.filter(uuid=uuid)
    called = stacks.filter(name=identifier)
    keys = two_keys(called.filter(deleted_at=None)) or two_keys(called)
    if len(keys) > 1:
        raise Invalid(f"Multiple stacks are called {identifier}. Name it by its id.")
    return stacks.filter(pk__in=keys)


def stacks_at(stacks: QuerySet[Any], name: str, identifier: str) -> QuerySet[Any]:
    """Select the stack with this name and UUID."""
    uuid = parse_uuid(identifier)
    return stacks.none() if uuid is None else stacks.filter(uuid=uuid, name=name)


def find_stack(stacks: QuerySet[Any], identifier: str, name: str | None = None) -> Stack:
    """Return a stack by its UUID or name, or by both if ``name`` is given.

    Raises:
        Invalid: several stacks have the name.
        NotFound: there is no such stack.
    """
    matches = stacks_named(stacks, identifier) if name is None else stacks_at(stacks, name, identifier)
    stack: Stack | None = matches.first()
    if stack is None:
        raise NotFound(f"The Stack ({identifier}) could not be found.")
    return stack


def resources_named(stack: Stack, identifier: str) -> QuerySet[Any]:
    """Select a resource of a stack by an identifier, in the order of OpenStack's orchestration service.

    The identifier is a name, else the id of its counterpart in the cloud, else its reference id.

    Raises:
        Invalid: several resources have the physical id.
    """
    here = StackResource.objects.present().filter(stack=stack)
    name = identifier.removeprefix(f"{stack.name}-")
    candidates = list(here.filter(Q(name__in={identifier, name}) | Q(physical_id=identifier)).select_related("stack"))
    name_keys = [candidate.pk for candidate in candidates if candidate.name == identifier]
    physical_keys = [candidate.pk for candidate in candidates if candidate.physical_id == identifier]
    reference_keys = [candidate.pk for candidate in candidates if candidate.reference_id == identifier]
    keys = name_keys or physical_keys or reference_keys
    if len(keys) > 1:
        raise Invalid(f"Multiple resources were found with the physical ID ({identifier}).")
    return here.filter(pk__in=keys)


def find_resource(stack: Stack, identifier: str) -> StackResource:
    """Return the resource of `resources_named`.

    Raises:
        Invalid: several resources have the physical id.
        NotFound: there is no such resource.
    """
    resource: StackResource | None = resources_named(stack, identifier).select_related("stack").first()
    if resource is None:
        raise NotFound(missing_resource(stack, identifier))
    return resource


def missing_resource(stack: Stack, identifier: str) -> str:
    """Return the message about a missing resource, which Heat's clients know."""
    return f"The Resource ({identifier}) could not be found in Stack {stack.name}."


def stacks_within(stack: Stack, depth: int) -> list[int]:
    """Return the keys of a stack and of its nested stacks down to a depth, in one query."""
    below: dict[int, list[int]] = {}
    tree = Stack.objects.present().filter(root=stack.root_key)
    for key, above in tree.values_list("pk", "parent_resource__stack"):
        below.setdefault(above, []).append(key)
    keys = level = [stack.pk]
    for _ in range(min(depth, len(below))):
        level = [key for above in level for key in below.get(above, [])]
        keys = [*keys, *level]
    return keys


def two_keys(stacks: QuerySet[Any]) -> list[int]:
    return list(stacks.order_by("pk").values_list("pk", flat=True)[:2])
