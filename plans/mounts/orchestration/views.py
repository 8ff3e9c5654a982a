"""The base of the orchestration views: the stacks that a request may see, and their address."""

from functools import cached_property
from typing import Any

from django.db.models import Q, QuerySet
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Stack
from cluster.stacks.lookup import find_stack
from plans.mounts.orchestration.shapes import Shapes
from plans.operations.stack_progress import with_progress
from watcher_site.accounts.projects import projects_of
from watcher_site.api.mounts import MountedView
from watcher_site.api.views import note_refused_reading

VIEW, MARK = "cluster.view_stack", "cluster.mark_stack"


class Versions(MountedView):
    """The versions of the API, for everybody: Heat answers so as well if a request names no version."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    def get(self, request: Request) -> Response:
        own = f"{request.scheme}://{request.get_host()}/orchestration/v1/"
        version = {"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": own}]}
        return Response({"versions": [version]}, 300)


class OrchestrationView(MountedView):
    """A view below ``/orchestration/v1/{project}``: members have what is of the project, others by their rights.

    What is of no project is found in each by those who may do the same with all.
    """

    needed = {"PATCH": MARK}
    project: str

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.project = kwargs["project"]
        super().initial(request, *args, **kwargs)
        if not self.may_with_all and self.project not in self.projects:
            raise PermissionDenied("You are not authorized to complete this action.")

    def handle_exception(self, problem: Exception) -> Response:
        response = super().handle_exception(problem)
        if self.request.method in SAFE_METHODS:
            note_refused_reading(self, problem, response)
        return response

    def history_event(self) -> str:
        """Return what history calls reading here."""
        return "stack.view"

    @cached_property
    def projects(self) -> frozenset[str]:
        return projects_of(self.request.user)

    @property
    def may_with_all(self) -> bool:
        """Return whether this person may do the requested operation with the stacks of all projects."""
        return bool(self.request.user.has_perm(self.needed.get(self.request.method or "", VIEW)))

    @property
    def sees_all(self) -> bool:
        return bool(self.request.user.has_perm(VIEW))

    @property
    def shapes(self) -> Shapes:
        # The path as it was sent: a project may have any letters.
        sent = self.request.get_full_path().split("/")[3]
        return Shapes(f"{self.request.scheme}://{self.request.get_host()}/orchestration/v1/{sent}")

    @property
    def own(self) -> Q:
        """The condition of what is found in this project."""
        return Q(project_id__in=[self.project, *([""] if self.may_with_all else [])])

    def stacks(self) -> QuerySet[Any]:
        return with_progress(Stack.objects.present().filter(self.own).select_related("parent_resource__stack"))

    def find_stack(self, identifier: str, name: str | None = None) -> Stack:
        """Raises: `NotFound`."""
        return find_stack(self.stacks(), identifier, name)
