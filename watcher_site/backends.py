"""Who may do what, asked of the database once a request."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Permission
from django.db.models import Q


class OneQueryBackend(ModelBackend):
    """Django's model backend, with a person's own and their groups' permissions read in one query."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        if not user_obj.is_active or user_obj.is_anonymous or obj is not None:
            return set()
        if not hasattr(user_obj, "_one_query_permissions"):
            user_obj._one_query_permissions = set(map(".".join, self.granted(user_obj)))
        permissions: set[str] = user_obj._one_query_permissions
        return permissions

    def granted(self, user_obj: Any) -> Any:
        permissions = Permission.objects.order_by()
        if not user_obj.is_superuser:
            permissions = permissions.filter(Q(user=user_obj.pk) | Q(group__user=user_obj.pk))
        return permissions.values_list("content_type__app_label", "codename")
