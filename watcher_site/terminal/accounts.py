"""Accounts as resources of the commands. The API has no such resource."""

from collections import defaultdict
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from rest_framework import serializers

from watcher_site.api.paging import read_flag
from watcher_site.api.serializers import ResourceSerializer, Row
from watcher_site.api.views import ResourceView
from watcher_site.models import ProjectMember
from watcher_site.refusals import NotFound


class AccountSerializer(ResourceSerializer):
    username = serializers.CharField()
    id = serializers.IntegerField()
    enabled = serializers.BooleanField()
    superuser = serializers.BooleanField()
    groups = serializers.ListField(child=serializers.CharField())
    projects = serializers.ListField(child=serializers.CharField())
    provider = serializers.CharField(allow_null=True, help_text="the address of the provider that they log in at")
    last_login = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()

    class Meta:
        collection = "users"
        columns = {
            "enabled": "is_active",
            "superuser": "is_superuser",
            "provider": "external_identity__issuer",
            "created_at": "date_joined",
        }
        computed = ("groups", "projects")

    @classmethod
    def add_groups(cls, rows: list[Row]) -> None:
        found = Group.objects.filter(user__in=[row["id"] for row in rows])
        collect(rows, "groups", found.order_by("name").values_list("user", "name"))

    @classmethod
    def add_projects(cls, rows: list[Row]) -> None:
        found = ProjectMember.objects.filter(user__in=[row["id"] for row in rows])
        collect(rows, "projects", found.order_by("project_id").values_list("user", "project_id"))

    @classmethod
    def add_links(cls, rows: list[Row], host: str) -> None:
        """Add no links, because accounts have no URL in the API."""


def collect(rows: list[Row], field: str, pairs: Any) -> None:
    """Add to each account the values of the pairs with its id."""
    values: dict[int, list[str]] = defaultdict(list)
    for key, value in pairs:
        values[key].append(value)
    for row in rows:
        row[field] = values[row["id"]]


class AccountListing(ResourceView):
    serializer_class = AccountSerializer
    model = User
    title = "User"
    policy = "user"
    filters = ["group", "enabled"]
    filter_schemas = {"enabled": {"enum": ["true", "false"]}}
    sort_keys = {"username": "username", "last_login": "last_login", "created_at": "date_joined"}

    def get_queryset(self) -> QuerySet[User]:
        return User.objects.all()

    def find_marker(self, marker: str) -> QuerySet[User]:
        return User.objects.filter(username=marker)

    def filter_group(self, queryset: QuerySet[User], value: str) -> QuerySet[User]:
        if not Group.objects.filter(name=value).exists():
            raise NotFound(f"group: there is no group {value}.")
        return queryset.filter(groups__name=value)

    def filter_enabled(self, queryset: QuerySet[User], value: str) -> QuerySet[User]:
        return queryset.filter(is_active=read_flag(self.request, "enabled"))
