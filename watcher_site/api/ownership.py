"""What belongs to projects: whoever has a right on all of it may do that with all, members with what is theirs."""

from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request

from watcher_site.api.permissions import ModelPermission, denied, required
from watcher_site.projects import projects_of
from watcher_site.refusals import Invalid


class ProjectPermission(ModelPermission):
    """Who has no right on a model may do the same with what belongs to their own projects."""

    def check(self, request: Request, view: Any) -> bool:
        needed = required(request, view)
        if request.user.has_perm(needed) or view.projects:
            return True
        raise denied(view)

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        """What is listed, or found, for a person without the right to see all is of their projects."""
        needed = required(request, view)
        project = obj[view.shown_project] if isinstance(obj, dict) else obj.project_id
        if request.user.has_perm(needed) or project in view.projects:
            return True
        raise denied(view)


class OwnedByProjects:
    """A `ResourceView` of such things.

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
        """Say whether this person may do something, of Django's verbs of permissions, with all of them."""
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
