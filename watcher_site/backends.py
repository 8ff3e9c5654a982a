"""Who a person is and what they may do: read together, once a request, and never remembered from one to the next."""

from typing import Any

import orjson
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.db.models import CharField, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from watcher_site.expressions import JSONArray
from watcher_site.statements import Placeholder, Query


def people() -> QuerySet[Any]:
    """Return the accounts, each with its own and its groups' permissions: ``granted``, a JSON array of their names."""
    person = OuterRef(OuterRef("pk"))
    own = User.user_permissions.through.objects.filter(user=person).values("permission")
    by_group = Group.permissions.through.objects.filter(group__user=person).values("permission")
    name = Concat("content_type__app_label", Value("."), "codename", output_field=CharField())
    granted = Permission.objects.order_by().filter(Q(pk__in=own) | Q(pk__in=by_group)).values(value=name)
    return User.objects.annotate(granted=JSONArray(granted))


person_by_key = Query(people().filter(pk=Placeholder("key", User._meta.pk)))


class OneQueryBackend(ModelBackend):
    """Django's model backend, with a person's own and their groups' permissions read in one query with the person."""

    def get_user(self, user_id: Any) -> Any:
        for person in person_by_key.rows(key=user_id):
            return person if self.user_can_authenticate(person) else None
        return None

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if not user_obj.is_active or user_obj.is_anonymous or obj is not None:
            return set()
        if not hasattr(user_obj, "_permissions"):
            user_obj._permissions = set(self.all_names() if user_obj.is_superuser else self.names(user_obj))
        permissions: set[str] = user_obj._permissions
        return permissions

    def names(self, user_obj: Any) -> list[str]:
        if not hasattr(user_obj, "granted"):
            user_obj.granted = next((person.granted for person in person_by_key.rows(key=user_obj.pk)), "[]")
        names: list[str] = orjson.loads(user_obj.granted)
        return names

    def all_names(self) -> list[str]:
        return [".".join(names) for names in Permission.objects.values_list("content_type__app_label", "codename")]
