"""Enforcement of the policy file by oslo.policy. The file is loaded again when it changes.

Policies that the file does not contain are decided by Django's permissions.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import structlog
from django.conf import settings

from watcher_site.accounts.projects import projects_of
from watcher_site.configuration.policy_file import PolicyFault, load_rules
from watcher_site.configuration.rights import CLOUD_ADMIN, MEMBER
from watcher_site.keystone.users import KeystoneUser

# The value of ``right:`` for permissions that depend on the body of a request.
BY_BODY = "by_body"
# The Keystone role that members of cloud-admin have, for rules such as those of OpenStack's services.
ADMIN = "admin"
log = structlog.get_logger(__name__)


class PolicyFile:
    """A policy file with its current rules. Thread-safe.

    Attributes:
        fault: the error in the file, if any; the previous rules stay in effect then.
    """

    def __init__(self, path: str) -> None:
        from oslo_config import cfg
        from oslo_policy.policy import Enforcer, register

        register("right", make_right_check())
        options = cfg.ConfigOpts()
        options([], project="watcher_site", default_config_files=[], default_config_dirs=[])
        self.path, self.lock = path, Lock()
        self.enforcer = Enforcer(options, rules={}, use_conf=False)
        self.rules: dict[str, Any] = {}
        self.signature: Any = None
        self.fault = ""

    def refresh(self) -> None:
        """Load the file if it has changed. Keep the current rules if it has an error."""
        if (found := self.file_signature()) == self.signature:
            return
        with self.lock:
            if found == self.signature:
                return
            try:
                rules = load_rules(self.path)
            except PolicyFault as problem:
                self.fault = str(problem)
                log.error("policy file not loaded", file=self.path, problem=self.fault)
            else:
                self.enforcer.set_rules(rules, use_conf=False)
                self.rules, self.fault = rules, ""
                log.info("policy file loaded", file=self.path, rules=len(rules))
            self.signature = found

    def file_signature(self) -> Any:
        try:
            found = Path(self.path).stat()
        except OSError:
            return "missing"
        return found.st_mtime_ns, found.st_size, found.st_ino

    def decide(self, name: str, user: Any, target: Mapping[str, Any], needed: str = "") -> bool | None:
        """Return whether a policy allows a user's request, or None if the file does not contain the policy."""
        self.refresh()
        if name not in self.rules:
            return None
        credentials = credentials_of(user, target.get("project_id")) | {"needed": needed}
        return bool(self.enforcer.enforce(name, dict(target), credentials))


@cache
def policy_file(path: str) -> PolicyFile:
    return PolicyFile(path)


def find_policy_fault() -> str:
    """Return the error in the current policy file, or an empty string."""
    if not settings.POLICY_FILE:
        return ""
    rules = policy_file(settings.POLICY_FILE)
    rules.refresh()
    return rules.fault


def decide(name: str, user: Any, target: Mapping[str, Any] | None = None, needed: str = "") -> bool | None:
    """Return the decision of the policy file, or None if it has no rule.

    Args:
        target: the attributes of the object, such as ``project_id``; empty for requests that concern no single object.
        needed: the permission that the body of the request requires, which replaces those of ``right:`` in the rule.
    """
    if not settings.POLICY_FILE:
        return None
    return policy_file(settings.POLICY_FILE).decide(name, user, target or {}, needed)


def target_of(found: Any) -> dict[str, str]:
    """Return the attributes of an object that rules can refer to."""
    values = {name: getattr(found, name, None) for name in ("project_id", "user_id", "uuid")}
    return {name: str(value) for name, value in values.items() if value is not None}


def projects_by(name: str, user: Any) -> frozenset[str]:
    """Return the projects for which a policy allows a user's requests: all of the user's if it is not in the file."""
    if decide(name, user) is None:
        return known_projects(user)
    candidates = [user.project_id] if isinstance(user, KeystoneUser) else known_projects(user)
    return frozenset(project for project in candidates if project and decide(name, user, {"project_id": project}))


def credentials_of(user: Any, project: str | None) -> dict[str, Any]:
    """Return the attributes of a user that rules can refer to.

    An account has the names of its groups as roles and the system as its scope. If the object belongs to one of its
    projects, it has that project too.
    """
    if isinstance(user, KeystoneUser):
        scope = {"system_scope": "all"} if user.scope == "system" else {}
        credentials = {
            "user_id": user.user_id,
            "username": user.name,
            "project_id": user.project_id,
            "roles": [*user.roles],
        }
        return {**credentials, **scope, "user": user}
    own_project = project if project and project in known_projects(user) else None
    roles = roles_of(user)
    return {
        "user_id": user.get_username(),
        "username": user.get_username(),
        "project_id": own_project,
        "roles": [*roles, *([MEMBER] if own_project and MEMBER not in roles else [])],
        "system_scope": "all",
        "user": user,
    }


def known_projects(user: Any) -> frozenset[str]:
    """Return the projects of an account, with one query per request, or of a Keystone user."""
    if isinstance(user, KeystoneUser):
        return user.projects
    if not hasattr(user, "_projects"):
        user._projects = projects_of(user)
    projects: frozenset[str] = user._projects
    return projects


def roles_of(user: Any) -> list[str]:
    """Return the groups of an account, with one query per request, and the role admin for cloud administrators.

    With a token that is limited to a group, this is the only one.
    """
    if not hasattr(user, "_roles"):
        held = getattr(user, "limited_groups", None)
        groups = [*(user.groups if held is None else held).values_list("name", flat=True)] if user.pk else []
        user._roles = [*groups, *([ADMIN] if user.is_superuser or CLOUD_ADMIN in groups else [])]
    roles: list[str] = user._roles
    return roles


@cache
def make_right_check() -> Any:
    """Return the class of the check ``right:``, an extension to the checks of oslo.policy."""
    from oslo_policy.policy import Check

    class RightCheck(Check):
        """Passes for users with a Django permission, or with a right of the table of roles, such as member."""

        def __call__(self, target: Any, creds: Any, enforcer: Any, current_rule: Any = None) -> bool:
            user, needed = creds["user"], creds["needed"]
            if self.match == BY_BODY or (needed and "." in self.match):
                return bool(not needed or user.has_perm(needed))
            if "." in self.match:
                return bool(user.has_perm(self.match))
            return self.match in (user.rights if isinstance(user, KeystoneUser) else creds["roles"])

    return RightCheck
