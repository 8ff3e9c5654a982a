"""The base of pages about objects of the user's projects."""

from functools import cached_property
from http import HTTPStatus
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render

from watcher_site.authorization.enforcement import known_projects, projects_by
from watcher_site.console.pages import Page
from watcher_site.keystone.users import KeystoneUser


class OwnProjectsMixin(Page):
    """A mixin for pages about objects of the projects of which the user is a member, as in the API for members.

    Objects of other projects are not found. A user without a project, such as a cloud administrator, gets a page that
    says so. ``project_policy`` is the policy of the same request to the API, which decides about each project.
    """

    permission_required: Any = ()
    project_policy: ClassVar[str]
    project_column: ClassVar[str] = "project_id"
    is_change: ClassVar[bool] = False
    """Whether the page is for changes, which require a role of users of Keystone."""

    @cached_property
    def projects(self) -> frozenset[str]:
        return projects_by(self.project_policy, self.request.user)

    def exists_for(self, user: Any) -> bool:
        """Return whether the user has a project. One whose roles in the project permit nothing is refused instead."""
        return bool(known_projects(user) or getattr(user, "project_id", None))

    def render_absence(self) -> HttpResponse:
        is_of_keystone = isinstance(self.request.user, KeystoneUser)
        context = {"is_of_keystone": is_of_keystone}
        return render(self.request, "projects/no_project.html", context, status=HTTPStatus.NOT_FOUND)

    def has_permission(self) -> bool:
        user: Any = self.request.user
        return user.is_authenticated and bool(self.projects) and (may_change(user) or not self.is_change)

    def get_queryset(self) -> QuerySet[Any]:
        found: QuerySet[Any] = super().get_queryset()  # type: ignore[misc]
        return found.filter(**{f"{self.project_column}__in": self.projects})

    def may_do(self, policy: str, project: str) -> bool:
        """Return whether the user may perform an operation of the API on an object of a project, for its button."""
        return may_change(self.request.user) and project in projects_by(policy, self.request.user)

    def may_create(self, policy: str) -> bool:
        """Return whether the user may create an object in at least one project."""
        return may_change(self.request.user) and bool(projects_by(policy, self.request.user))


def may_change(user: Any) -> bool:
    """Return whether a user may change objects of their projects: an account, or a user of Keystone with a role."""
    return not isinstance(user, KeystoneUser) or user.may_change_projects
