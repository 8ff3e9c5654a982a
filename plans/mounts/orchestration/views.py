"""The base of the orchestration views: the stacks that a request may see, and their format."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import quote

from django.db.models import Q, QuerySet
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Stack, StackResource, StackStatus
from cluster.stacks.lookup import find_stack
from plans.operations.stack_progress import with_progress
from watcher_site.api.mounts import MountedView
from watcher_site.api.permissions import may_use_projects
from watcher_site.api.views import record_refused_reading
from watcher_site.authorization.enforcement import decide, projects_by

VIEW, MARK = "cluster.view_stack", "cluster.mark_stack"
# Heat's policy on lists of the stacks of all projects.
ALL_PROJECTS = "stacks:global_index"
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
        """Return a stack in the format of lists. It was read with its ``parent_resource`` and `with_progress`."""
        above = stack.parent_resource.stack if stack.parent_resource else None
        return {
            "id": stack.uuid,
            "links": [{"href": self.url(stack), "rel": "self"}],
            "stack_name": stack.name,
            "description": stack.template.get("description", ""),
            "stack_status": stack.shown_status,
            "stack_status_reason": stack.shown_reason,
            "creation_time": format_time(stack.created_at),
            "updated_time": format_time(stack.updated_at),
            "deletion_time": format_time(stack.deleted_at),
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
        """Return resources. ``known`` are all resources of their stacks, for the dependents of each."""
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
            "creation_time": format_time(resource.created_at),
            "updated_time": format_time(resource.updated_at or resource.created_at),
            "required_by": sorted(required_by),
            "links": links,
        }
        if resource.stack.parent_resource is not None:
            shape["parent_resource"] = resource.stack.parent_resource.name
        return shape


class Versions(MountedView):
    """The versions of the API. Requires no login. Heat also returns them for requests without a version."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        own = f"{request.scheme}://{request.get_host()}/orchestration/v1/"
        version = {"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": own}]}
        return Response({"versions": [version]}, 300)


class OrchestrationView(MountedView):
    """A view below ``/orchestration/v1/{project}``, for members of the project and users with permission on all.

    For the latter, stacks without a project are found in each project.
    """

    permissions = {"GET": VIEW, "PATCH": MARK}
    project: str

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.project = kwargs["project"]
        super().initial(request, *args, **kwargs)
        decision = decide(self.policy_name, request.user, {"project_id": self.project})
        if decision is False:
            raise PermissionDenied(f"Policy doesn't allow {self.policy_name} to be performed.")
        if decision is None and not self.may_use_all and not self.is_member_with_right:
            raise PermissionDenied("You are not authorized to complete this action.")

    def handle_exception(self, problem: Exception) -> Response:
        response = super().handle_exception(problem)
        if self.request.method in SAFE_METHODS:
            record_refused_reading(self, problem, response)
        return response

    def history_event(self) -> str:
        """Return the event of history for reading."""
        return "stack.view"

    @property
    def policy_name(self) -> str:
        return self.policies.get(self.request.method or "", self.policy)

    @cached_property
    def projects(self) -> frozenset[str]:
        return projects_by(self.policy_name, self.request.user)

    @property
    def is_member_with_right(self) -> bool:
        return self.project in self.projects and may_use_projects(self.request)

    @cached_property
    def may_use_all(self) -> bool:
        """Whether the user may perform the requested operation on the stacks of all projects."""
        user = self.request.user
        decision = decide(self.policy_name, user)
        return (
            bool(user.has_perm(self.permissions.get(self.request.method or "", VIEW)))
            if decision is None
            else decision
        )

    @cached_property
    def sees_all(self) -> bool:
        """Whether a list may contain the stacks of all projects."""
        decision = decide(ALL_PROJECTS, self.request.user)
        return bool(self.request.user.has_perm(VIEW)) if decision is None else decision

    @property
    def shapes(self) -> Shapes:
        # The path before decoding: the id of a project may contain any characters.
        sent = self.request.get_full_path().split("/")[3]
        return Shapes(f"{self.request.scheme}://{self.request.get_host()}/orchestration/v1/{sent}")

    @property
    def project_condition(self) -> Q:
        """The condition of stacks that are found in this project."""
        return Q(project_id__in=[self.project, *([""] if self.may_use_all else [])])

    def stacks(self) -> QuerySet[Any]:
        return with_progress(
            Stack.objects.present().filter(self.project_condition).select_related("parent_resource__stack")
        )

    def find_stack(self, identifier: str, name: str | None = None) -> Stack:
        """Return a stack that the user may see. Raises: `NotFound`."""
        return find_stack(self.stacks(), identifier, name)


def format_time(time: datetime | None) -> str | None:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if time else None


def matching_statuses(part: int, values: Iterable[str]) -> list[str]:
    """Return the statuses whose action (0) or outcome (1) is one of these, ignoring case."""
    wanted = {value.upper() for value in values}
    return [status for status in StackStatus.values if status.split("_", 1)[part] in wanted]
