"""Permissions of the API: Django's permissions on the model of the resource, and those of members of projects.

Resources of projects are available to users with a permission on the model, and to members of the project.
"""

from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.request import Request

from watcher_site.authorization.enforcement import decide, projects_by, target_of
from watcher_site.keystone.users import KeystoneUser
from watcher_site.refusals import Invalid

VERBS = {
    "GET": "view",
    "HEAD": "view",
    "OPTIONS": "view",
    "POST": "add",
    "PUT": "change",
    "PATCH": "change",
    "DELETE": "delete",
}


class LoggedIn(IsAuthenticated):
    """Require an account, or a Keystone user with a role that the site uses. Read-only tokens permit only reads."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        # A policy file may grant rights to roles that the table of roles does not contain.
        if isinstance(user, KeystoneUser) and not user.rights and not settings.POLICY_FILE:
            raise PermissionDenied(f"No role of your token gives a right here. Its scope: {user.scope}.")
        if request.method not in SAFE_METHODS and getattr(request.auth, "read_only", False):
            raise PermissionDenied("This token is for reading only.")
        return super().has_permission(request, view)


class ModelPermission(LoggedIn):
    """Require the permission that a view names, or else Django's permission for the method on the view's model.

    A single object is looked up before its permission is checked: users without the permission get 404 if it does not
    exist, and 403 if it does, as with OpenStack's servers.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        if view.detail and view.action is not None:
            return True
        return self.has_object_permission(request, view, None)

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        """Return True if the user has the permission, raise otherwise. There is no object for lists and creations."""
        decision = decide_on(request, view, obj) if settings.POLICY_FILE else None
        needed = required(request, view)
        if decision is None:
            decision = not needed or request.user.has_perm(needed)
        if not decision:
            raise denied(view)
        return True


def decide_on(request: Request, view: Any, obj: Any) -> bool | None:
    """Return the decision of the policy file on a request for an object, or None if it has no rule for it.

    The object is stored on the view for rights that depend on the body
    (`watcher_site.api.views.ResourceView.require`).
    """
    view.policy_target = target_in(view, obj)
    return decide(view.policy_name(), request.user, view.policy_target)


def target_in(view: Any, obj: Any) -> dict[str, str]:
    """Return the attributes of an object, or of its row in a response, that rules can refer to."""
    if not isinstance(obj, dict):
        return target_of(obj)
    project = getattr(view, "shown_project", "project_id")
    return target_of(SimpleNamespace(**{**obj, "project_id": obj.get(project)}))


def denied(view: Any) -> PermissionDenied:
    return PermissionDenied(f"Policy doesn't allow {view.policy_name()} to be performed.")


def required(request: Request, view: Any) -> str:
    special: str | None = view.permissions_required.get(view.action)
    if special is not None:
        return special
    verb, options = VERBS.get(request.method or ""), view.model._meta
    return f"{options.app_label}.{verb}_{options.model_name}" if verb else ""


class ProjectPermission(ModelPermission):
    """Also grants users access to the objects of their own projects without a permission on the model."""

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        """Return True for users with the permission and for members of the object's project, raise otherwise.

        Without an object, for lists and creations, members of any project are allowed.
        """
        decision = decide_on(request, view, obj) if settings.POLICY_FILE else None
        if decision is not None:
            # Without an object, the rule may still allow the request for the objects of a project.
            if decision or (obj is None and view.projects):
                return True
            raise denied(view)
        if request.user.has_perm(required(request, view)):
            return True
        if obj is None:
            is_member = bool(view.projects)
        else:
            project = obj.get(view.shown_project) if isinstance(obj, dict) else obj.project_id
            is_member = project in (view.visible_projects if request.method in SAFE_METHODS else view.projects)
        if is_member and may_use_projects(request):
            return True
        raise denied(view)


def may_use_projects(request: Request) -> bool:
    """Return whether a user may send this request for objects of their projects.

    Members of projects may read and change these. A Keystone user may have a role that only permits reads.
    """
    is_reading, user = request.method in SAFE_METHODS, request.user
    return is_reading or not isinstance(user, KeystoneUser) or user.may_change_projects


class OwnedByProjects:
    """A mixin for a `ResourceView` whose objects belong to projects.

    ``project_column`` is the project's column in the model, ``shown_project`` its field in responses, and
    ``project_argument`` its name in refusals of a body.
    """

    model: Any
    request: Any
    policy_name: Any
    policy: str
    detail: bool
    permission_classes: Any = [ProjectPermission]
    project_column = "project_id"
    shown_project: str
    project_argument = "project_id"
    shares_unowned: ClassVar[bool] = False
    """Whether members of any project may read the objects without a project."""

    @property
    def visible_projects(self) -> frozenset[str]:
        """The projects whose objects this user may read; the empty string stands for no project."""
        return self.projects | {""} if self.projects and self.shares_unowned else self.projects

    @cached_property
    def projects(self) -> frozenset[str]:
        """The projects for which this user may send the request: their own, or those that the rule allows."""
        return projects_by(self.policy_name(), self.request.user)

    def may(self, verb: str, name: str = "") -> bool:
        """Return whether this user has Django's permission ``verb`` on the model, that is, on all of its objects.

        A rule of the policy file, for the policy of this name or of the request, takes precedence.
        """
        decision = decide(name or self.policy_name(), self.request.user)
        if decision is not None:
            return decision
        options = self.model._meta
        return bool(self.request.user.has_perm(f"{options.app_label}.{verb}_{options.model_name}"))

    def get_queryset(self) -> QuerySet[Any]:
        """Return the objects that this user may read. A change of one that they may only read is refused with 403."""
        found: QuerySet[Any] = super().get_queryset()  # type: ignore[misc]
        if self.may("view"):
            return found
        projects, reading = self.visible_projects, f"{self.policy}:get"
        if self.detail and settings.POLICY_FILE:
            if self.may("view", reading):
                return found
            projects |= projects_by(reading, self.request.user)
        return found.filter(**{f"{self.project_column}__in": projects})

    def choose_project(self, requested: str | None) -> str:
        """Return the project of a new object: one of the user's own projects, or any project for administrators.

        Raises:
            Invalid: the project is missing, or is not one of the user's projects.
        """
        if self.may("add"):
            return next(iter(sorted(self.projects)), "") if requested is None else requested
        if requested is None and len(self.projects) == 1:
            return next(iter(self.projects))
        if requested is None or requested not in self.projects:
            choices = ", ".join(sorted(self.projects))
            raise Invalid(f"{self.project_argument}: must be one of your projects: {choices}.")
        return requested
