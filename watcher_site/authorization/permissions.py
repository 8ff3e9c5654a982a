"""Permissions of the console: each is decided by the policy of the corresponding operation of the API."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from watcher_site.authorization.enforcement import decide

# The policies of permissions whose code names do not follow from the policy.
POLICIES = {
    "actions.skip_action": "action:update",
    "plans.cancel_actionplan": "action_plan:update",
    "cluster.view_computenode": "data_model:get_all",
    "cluster.view_pool": "data_model:get_all",
    "cluster.view_volume": "data_model:get_all",
    "cluster.view_stackresource": "resource:detail",
    "watcher_site.manage_users": "user:manage",
}
KINDS = {
    "actionplan": "action_plan",
    "audittemplate": "audit_template",
    "delivery": "undelivered",
    "historyentry": "history",
    "policybinding": "cluster_policy",
    "scoringengine": "scoring_engine",
}
VERBS = {"view": "get_all", "add": "create", "change": "update"}
# Policies whose rules may depend on the permission that the content of a request requires.
BY_CONTENT = frozenset({"action:update", "action_plan:update"})


def policy_of(permission: str) -> str:
    """Return the name of the policy that replaces a permission."""
    verb, _, model = permission.partition(".")[2].partition("_")
    return POLICIES.get(permission) or f"{KINDS.get(model, model)}:{VERBS.get(verb, verb)}"


def may(user: Any, permission: str, target: Mapping[str, Any] | None = None, policy: str = "") -> bool:
    """Return whether a user of the console may perform an operation, by the policy file or else by the permission.

    Args:
        target: the attributes of the object, as for `decide`.
        policy: the policy of the operation, if it is not the one that belongs to the permission.
    """
    if not user.is_authenticated:
        return False
    name = policy or policy_of(permission)
    decision = decide(name, user, target)
    if decision and name in BY_CONTENT:
        decision = decide(name, user, target, needed=permission)
    return bool(user.has_perm(permission)) if decision is None else decision


class Permissions:
    """The template variable ``perms``: ``perms.plans.start_actionplan`` is decided for the object of the page."""

    def __init__(self, request: HttpRequest, app: str = "") -> None:
        self.request, self.app = request, app

    def __getitem__(self, name: str) -> Any:
        if not self.app:
            return Permissions(self.request, name)
        return may(self.request.user, f"{self.app}.{name}", target_of_page(self.request))


def add_permissions(request: HttpRequest) -> dict[str, Any]:
    """Replace Django's ``perms``, which does not use the policy file: a context processor."""
    return {"perms": Permissions(request)} if settings.POLICY_FILE and hasattr(request, "user") else {}


def target_of_page(request: HttpRequest) -> Mapping[str, Any]:
    """Return the attributes of the object of the requested page."""
    target: Mapping[str, Any] = getattr(request, "policy_target", {})
    return target
