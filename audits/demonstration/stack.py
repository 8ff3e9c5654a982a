"""The demonstration's stack: servers of its cloud as resources, and one that somebody marked unhealthy."""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from audits.demonstration.cluster import OWN, make_uuid
from cluster.models import Server, Stack, StackResource, StackStatus
from cluster.stacks.changes import template_within
from cluster.stacks.templates.templates import normalise

NAME = "build"
PROJECT = "build"
RUNNERS = ("ci-runner-2", "ci-runner-3", "ci-runner-4")
MARKED, REASON = "ci-runner-4", "its jobs fail since its disk was full"
TEMPLATE: dict[str, Any] = {
    "description": "Where software is built, and kept",
    "resources": {
        "registry": {"type": "server", "properties": {"flavor": "medium"}},
        "artifacts": {"type": "server", "properties": {"flavor": "small"}, "depends_on": "registry"},
        "runners": {
            "type": "scaling_group",
            "properties": {"size": len(RUNNERS), "member": {"type": "server", "properties": {"flavor": "medium"}}},
            "depends_on": "registry",
        },
    },
}


def make_stack() -> Stack:
    """Make servers of the cloud the resources of a stack. The caller has begun a transaction."""
    template = normalise(TEMPLATE)
    stack = add_stack(NAME, template)
    for name, wanted in template["resources"].items():
        if wanted["type"] == StackResource.Type.SERVER:
            add_server(stack, name, wanted, name)
        else:
            add_group(stack, name, wanted)
    return stack


def add_stack(name: str, template: Mapping[str, Any], **within: Any) -> Stack:
    made: Stack = Stack.objects.create(
        uuid=make_uuid(),
        name=name,
        template=template,
        project_id=PROJECT,
        status=StackStatus.CREATE_COMPLETE,
        status_reason="CREATE completed successfully",
        **within,
    )
    return made


def add_group(stack: Stack, name: str, wanted: dict[str, Any]) -> None:
    holder = add_resource(stack, name, wanted)
    within = add_stack(f"{stack.name}-{name}", template_within(wanted, RUNNERS), root=stack, parent_resource=holder)
    StackResource.objects.filter(pk=holder.pk).update(physical_id=str(within.uuid))
    for member, properties in within.template["resources"].items():
        add_server(within, member, properties, member)


def add_server(stack: Stack, name: str, wanted: dict[str, Any], server: str) -> None:
    resource = add_resource(stack, name, wanted, physical_id=str(Server.objects.present().get(name=server).uuid))
    if server == MARKED:
        resource.mark_unhealthy(REASON)
        resource.save_state()


def add_resource(stack: Stack, name: str, wanted: dict[str, Any], **columns: Any) -> StackResource:
    made: StackResource = StackResource.objects.create(
        uuid=make_uuid(),
        stack=stack,
        name=name,
        type=wanted["type"],
        properties=wanted["properties"],
        depends_on=wanted["depends_on"],
        status=StackStatus.CREATE_COMPLETE,
        status_reason="CREATE completed successfully",
        made_at=timezone.now(),
        **columns,
    )
    return made


def find_stacks() -> Any:
    """Return the demonstration's stack, and those within, that are there."""
    return Stack.objects.present().filter(Q(uuid__range=OWN) | Q(root__uuid__range=OWN))


def strange_stacks() -> Iterator[str]:
    """Yield the stacks that people made for themselves."""
    yield from (f"stack {stack}" for stack in Stack.objects.present().roots().exclude(pk__in=find_stacks()))


def delete_stacks() -> None:
    """Take away the demonstration's stack, which only stands for servers that go. Its actions stay."""
    StackResource.objects.filter(stack__in=find_stacks()).soft_delete()
    find_stacks().soft_delete()


def servers_of_resources() -> set[UUID]:
    """Return the UUIDs of the servers that were created for resources: a resource's UUID begins their token."""
    resources = {str(uuid) for uuid in StackResource.objects.values_list("uuid", flat=True)}
    created = Server.objects.exclude(token="").values_list("uuid", "token")
    return {uuid for uuid, token in created if token.partition("/")[0] in resources}
