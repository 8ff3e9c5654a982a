"""Stacks and resources in Heat's words."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from cluster.models import Stack, StackResource, StackStatus

Shape = dict[str, Any]
TYPES = {
    StackResource.Type.SERVER: "OS::Nova::Server",
    StackResource.Type.SCALING_GROUP: "OS::Heat::AutoScalingGroup",
    StackResource.Type.STACK: "OS::Heat::Stack",
}


class Shapes:
    """Converts stacks and resources to Heat's format, with links below ``root``, the URL of the project."""

    def __init__(self, root: str) -> None:
        self.root = root

    def url(self, stack: Stack, resource: StackResource | None = None) -> str:
        path = f"{self.root}/stacks/{quote(stack.name, safe='')}/{stack.uuid}"
        return path if resource is None else f"{path}/resources/{quote(resource.name, safe='')}"

    def stack(self, stack: Any) -> Shape:
        """Return a stack as a list shows it. It was read with its ``parent_resource`` and `with_progress`."""
        above = stack.parent_resource.stack if stack.parent_resource else None
        return {
            "id": stack.uuid,
            "links": [{"href": self.url(stack), "rel": "self"}],
            "stack_name": stack.name,
            "description": stack.template.get("description", ""),
            "stack_status": stack.shown_status,
            "stack_status_reason": stack.shown_reason,
            "creation_time": when(stack.created_at),
            "updated_time": when(stack.updated_at),
            "deletion_time": when(stack.deleted_at),
            "stack_owner": stack.user_id,
            "stack_user_project_id": None,
            "project": stack.project_id,
            "parent": above and above.uuid,
            "tags": None,
        }

    def whole_stack(self, stack: Stack) -> Shape:
        return {
            **self.stack(stack),
            "parameters": {},
            "outputs": [],
            "capabilities": [],
            "notification_topics": [],
            "template_description": stack.template.get("description", ""),
            "disable_rollback": True,
            "timeout_mins": stack.timeout_mins,
        }

    def resources(self, resources: Sequence[StackResource], known: Iterable[StackResource]) -> list[Shape]:
        """Return resources; ``known`` are all those of their stacks, which tell what each is required by."""
        required_by = defaultdict(list)
        for one in known:
            for name in one.depends_on:
                required_by[one.stack_id, name].append(one.name)
        return [self.resource(one, required_by[one.stack_id, one.name]) for one in resources]

    def resource(self, resource: StackResource, required_by: list[str]) -> Shape:
        links = [
            {"href": self.url(resource.stack, resource), "rel": "self"},
            {"href": self.url(resource.stack), "rel": "stack"},
        ]
        shape: Shape = {
            "resource_name": resource.name,
            "logical_resource_id": resource.name,
            "resource_type": TYPES[StackResource.Type(resource.type)],
            "resource_status": resource.status,
            "resource_status_reason": resource.status_reason,
            "physical_resource_id": resource.physical_id or "",
            "creation_time": when(resource.created_at),
            "updated_time": when(resource.updated_at or resource.created_at),
            "required_by": sorted(required_by),
            "links": links,
        }
        if resource.stack.parent_resource is not None:
            shape["parent_resource"] = resource.stack.parent_resource.name
        return shape


def when(time: datetime | None) -> str | None:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if time else None


def statuses_having(part: int, values: Iterable[str]) -> list[str]:
    """Return the statuses whose action (0) or outcome (1) is one of these, in whatever case."""
    wanted = {value.upper() for value in values}
    return [status for status in StackStatus.values if status.split("_", 1)[part] in wanted]
