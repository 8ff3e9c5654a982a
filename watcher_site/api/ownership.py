"""Access to the resources of projects: for people with a permission on the model, and for members of the project."""

from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request

from watcher_site.accounts.projects import projects_of
from watcher_site.api.permissions import ModelPermission, denied, required
from watcher_site.refusals import Invalid


class ProjectPermission(ModelPermission):
    """Grants people without a permission on the model the same access to the rows of their own projects."""

    def check(self, request: Request, view: Any) -> bool:
        needed = required(request, view)
        if request.user.has_perm(needed) or view.projects:
            return True
        raise denied(view)

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        """Return True for people with the permission and for members of the object's project, raise otherwise."""
        needed = required(request, view)
        project = obj[view.shown_project] if isinstance(obj, dict) else obj.project_id
        if request.user.has_perm(needed) or project in view.projects:
            return True
        raise denied(view)


class OwnedByProjects:
    """A mixin for a `ResourceView` whose objects belong to projects.

    ``project_column`` is where the model has the project, ``shown_project`` where an answer has it, and
    ``project_argument`` what a refusal calls that of a body.
    """

    model: Any
    request: Any
    permission_classes: Any = [ProjectPermission]
    project_column = "project_id"
    shown_project: str
    project_argument = "project_id"

    @cached_property
    def projects(self) -> frozenset[str]:
        return projects_of(self.request.user)

    def may(self, verb: str) -> bool:
        """Return whether this person has Django's permission ``verb`` on the model, that is on all of its objects."""
        options = self.model._meta
        return bool(self.request.user.has_perm(f"{options.app_label}.{verb}_{options.model_name}"))

    def get_queryset(self) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset()  # type: ignore[misc]
        return found if self.may("view") else found.filter(**{f"{self.project_column}__in": self.projects})

    def choose_project(self, wanted: str | None) -> str:
        """Return whose a new one is: one of the person's own projects, or any for administrators.

        Raises:
            Invalid: it must be named, or is none of theirs.
        """
        if self.may("add"):
            return next(iter(sorted(self.projects)), "") if wanted is None else wanted
        if wanted is None and len(self.projects) == 1:
            return next(iter(self.projects))
        if wanted is None or wanted not in self.projects:
            own = ", ".join(sorted(self.projects))
            raise Invalid(f"{self.project_argument}: must be one of your projects: {own}.")
        return wanted
