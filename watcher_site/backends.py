"""Authentication backends, which read an account together with its permissions, once in each request.

Every password that a request carries is verified here, within the limits of `watcher_site.accounts.login_limits`.
"""

from functools import cache
from typing import Any

import orjson
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.db.models import F, OuterRef, QuerySet

from watcher_site.accounts.login_limits import login_of, verifications
from watcher_site.database.expressions import JSONArray
from watcher_site.database.queries import Placeholder, Query

# Whom the site asks for at each request, and no more of them than it needs for that.
COLUMNS = ("pk", "username", "password", "is_active", "is_staff", "is_superuser")


def people() -> QuerySet[Any]:
    """Return the accounts, each with its own and its groups' permissions: JSON arrays of their keys.

    The keys are what the database gathers fastest; `permission_keys` knows what they stand for.
    """
    own = User.user_permissions.through.objects.filter(user=OuterRef("pk"))
    groups = User.groups.through.objects.filter(user=OuterRef(OuterRef("pk")))
    by_group = Group.permissions.through.objects.filter(group__in=groups.values("group"))
    return User.objects.only(*COLUMNS).annotate(
        own_permissions=JSONArray(own.values(value=F("permission_id"))),
        group_permissions=JSONArray(by_group.values(value=F("permission_id"))),
    )


@cache
def permission_keys() -> dict[str, int]:
    """Return the key of each permission, by its name. Migrations make new ones; no key is ever used again."""
    rows = Permission.objects.values_list("pk", "content_type__app_label", "codename")
    return {f"{app}.{codename}": key for key, app, codename in rows}


person_by_key = Query(people().filter(pk=Placeholder("key", User._meta.pk)))


class OneQueryBackend(ModelBackend):
    """Django's model backend, with a person's own and their groups' permissions read in one query with the person."""

    def authenticate(self, request: Any, username: Any = None, password: Any = None, **others: Any) -> Any:
        """Return the account with this name and password, or None.

        Raises:
            LoginsLimited: there were too many failed logins; the password was not verified.
            LoginsBusy: too many passwords are being verified.
        """
        login = login_of(request, username)
        if login is None:
            return super().authenticate(request, username, password, **others)
        login.require_allowed()
        with verifications.wait_for_turn():
            login.require_allowed()
            person = super().authenticate(request, username, password, **others)
            login.record_success() if person else login.record_failure()
        return person

    def get_user(self, user_id: Any) -> Any:
        for person in person_by_key.rows(key=user_id):
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
        """Return the keys of the permissions that a person has. After this, `permission_keys` knows all of them."""
        if not hasattr(user_obj, "_permission_keys"):
            known = hasattr(user_obj, "own_permissions")
            person = user_obj if known else next(iter(person_by_key.rows(key=user_obj.pk)))
            held = {*orjson.loads(person.own_permissions), *orjson.loads(person.group_permissions)}
            if not held.issubset(permission_keys().values()):
                # A migration has made some since.
                permission_keys.cache_clear()
            user_obj._permission_keys = held
        keys: set[int] = user_obj._permission_keys
        return keys
