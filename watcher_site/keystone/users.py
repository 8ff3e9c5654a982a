"""Keystone users, which are read from each token and not stored in a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from django.apps import apps
from django.conf import settings

from watcher_site.apps import SiteApp
from watcher_site.configuration.keystone import PROJECT, SYSTEM
from watcher_site.configuration.rights import CLOUD_ADMIN, MEMBER, PROJECT_READER, READER, is_for_readers


@dataclass(frozen=True)
class KeystoneUser:
    """The user of a valid token, with the rights of its roles in its scope.

    It replaces the account in requests of the API.

    Attributes:
        scope: system, project or domain; empty for a token without a scope.
        roles: the names of the roles, in lower case, as Keystone compares them.
    """

    user_id: str
    name: str
    scope: str
    project_id: str | None
    roles: frozenset[str]

    pk = None
    is_authenticated = is_active = True
    is_anonymous = is_staff = is_superuser = False

    @classmethod
    def of_token(cls, token: Mapping[str, Any]) -> Self:
        """Return the user of a token in the format of Keystone's API, version 3."""
        user, project = token["user"], token.get("project") or {}
        is_in_system = bool((token.get("system") or {}).get("all"))
        return cls(
            user_id=user["id"],
            name=user["name"],
            scope=SYSTEM if is_in_system else PROJECT if project else "domain" if token.get("domain") else "",
            project_id=project.get("id"),
            roles=frozenset(role["name"].lower() for role in token.get("roles") or ()),
        )

    def __str__(self) -> str:
        return self.name

    def get_username(self) -> str:
        return self.name

    @cached_property
    def rights(self) -> frozenset[str]:
        """The rights in the table of roles for the roles in the scope; none in a domain."""
        if self.scope not in (SYSTEM, PROJECT):
            return frozenset()
        names = {name for role in self.roles for name in (role, f"{self.scope}:{role}")}
        return frozenset(right for role, right in settings.KEYSTONE_ROLES.items() if role in names)

    @property
    def projects(self) -> frozenset[str]:
        """The projects whose servers and stacks the user may read: that of the token, or none."""
        has_project = self.project_id and self.rights & {MEMBER, PROJECT_READER}
        return frozenset((self.project_id,)) if self.project_id and has_project else frozenset()

    @property
    def may_change_projects(self) -> bool:
        return MEMBER in self.rights

    def has_perm(self, permission: str, obj: Any = None) -> bool:
        """Return whether the user has a permission on all objects of a kind, without a query."""
        app, _, codename = permission.partition(".")
        if not isinstance(apps.app_configs.get(app), SiteApp):
            return False
        return CLOUD_ADMIN in self.rights or (READER in self.rights and is_for_readers(codename))

    def has_perms(self, permissions: Iterable[str], obj: Any = None) -> bool:
        return all(self.has_perm(permission) for permission in permissions)
