"""Permissions of the API: Django's permissions on the model of the resource."""

from typing import Any

from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request

VERBS = {
    "GET": "view",
    "HEAD": "view",
    "OPTIONS": "view",
    "POST": "add",
    "PUT": "change",
    "PATCH": "change",
    "DELETE": "delete",
}


class ModelPermission(IsAuthenticated):
    """Require the permission that a view names, or else Django's own for the method on the view's model.

    A single object is looked up before its permission is checked: people without the right get 404 if it does not
    exist, and 403 if it does, as on existing servers.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        if view.detail and view.action is not None:
            return True
        return self.check(request, view)

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        return self.check(request, view)

    def check(self, request: Request, view: Any) -> bool:
        needed = required(request, view)
        if needed and not request.user.has_perm(needed):
            raise denied(view)
        return True


def denied(view: Any) -> PermissionDenied:
    return PermissionDenied(f"Policy doesn't allow {view.policy_name()} to be performed.")


def required(request: Request, view: Any) -> str:
    special: str | None = view.permissions_required.get(view.action)
    if special is not None:
        return special
    verb, options = VERBS.get(request.method or ""), view.model._meta
    return f"{options.app_label}.{verb}_{options.model_name}" if verb else ""
