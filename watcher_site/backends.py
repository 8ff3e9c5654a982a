"""Authentication backends that read an account and its permissions in one query for each request.

Passwords of requests are verified here, within the limits of `watcher_site.accounts.login_limits`.
"""

from functools import cache
from typing import Any

import orjson
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.db.models import F, OuterRef, QuerySet

from watcher_site.accounts.login_limits import login_of, verifications
from watcher_site.database.expressions import JSONIntegers
from watcher_site.database.queries import Placeholder, Query

# The columns of accounts that requests need.
COLUMNS = ("pk", "username", "password", "is_active", "is_staff", "is_superuser")


def accounts() -> QuerySet[Any]:
    """Return the accounts with the keys of their own and their groups' permissions as JSON arrays.

    The database aggregates keys fastest; `permission_keys` maps them to names.
    """
    direct = User.user_permissions.through.objects.filter(user=OuterRef("pk"))
    groups = User.groups.through.objects.filter(user=OuterRef(OuterRef("pk")))
    by_group = Group.permissions.through.objects.filter(group__in=groups.values("group"))
    return User.objects.only(*COLUMNS).annotate(
        own_permissions=JSONIntegers(direct.values(value=F("permission_id"))),
        group_permissions=JSONIntegers(by_group.values(value=F("permission_id"))),
    )


@cache
def permission_keys() -> dict[str, int]:
    """Return the keys of all permissions by name. Migrations add permissions, and keys are never reused."""
    rows = Permission.objects.values_list("pk", "content_type__app_label", "codename")
    return {f"{app}.{codename}": key for key, app, codename in rows}


account_by_key = Query(accounts().filter(pk=Placeholder("key", User._meta.pk)))


class OneQueryBackend(ModelBackend):
    """Django's model backend, which reads an account with its permissions and those of its groups in one query."""

    def authenticate(self, request: Any, username: Any = None, password: Any = None, **credentials: Any) -> Any:
        """Return the account with this name and password, or None.

        Raises:
            LoginsLimited: there were too many failed logins; the password was not verified.
            LoginsBusy: too many passwords are being verified.
        """
        login = login_of(request, username)
        if login is None:
            return super().authenticate(request, username, password, **credentials)
        login.require_allowed()
        with verifications.wait_for_turn():
            login.require_allowed()
            person = super().authenticate(request, username, password, **credentials)
            login.record_success() if person else login.record_failure()
        return person

    def get_user(self, user_id: Any) -> Any:
        for person in account_by_key.rows(key=user_id):
            return person if self.user_can_authenticate(person) else None
        return None

    def has_perm(self, user_obj: Any, perm: str, obj: Any = None) -> bool:
        if not user_obj.is_active or user_obj.is_superuser or obj is not None:
            return super().has_perm(user_obj, perm, obj)
        held = self.keys(user_obj)
        return permission_keys().get(perm) in held

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if not user_obj.is_active or user_obj.is_anonymous or obj is not None:
            return set()
        if not hasattr(user_obj, "_permissions"):
            user_obj._permissions = set(permission_keys() if user_obj.is_superuser else self.names(user_obj))
        permissions: set[str] = user_obj._permissions
        return permissions

    def names(self, user_obj: Any) -> list[str]:
        held = self.keys(user_obj)
        return [name for name, key in permission_keys().items() if key in held]

    def keys(self, user_obj: Any) -> set[int]:
        """Return the keys of the permissions of an account, all of which `permission_keys` then contains."""
        if not hasattr(user_obj, "_permission_keys"):
            known = hasattr(user_obj, "own_permissions")
            person = user_obj if known else next(iter(account_by_key.rows(key=user_obj.pk)))
            held = {*orjson.loads(person.own_permissions), *orjson.loads(person.group_permissions)}
            if not held.issubset(permission_keys().values()):
                # A migration has added permissions since.
                permission_keys.cache_clear()
            user_obj._permission_keys = held
        keys: set[int] = user_obj._permission_keys
        return keys
