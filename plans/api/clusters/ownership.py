"""The access of members of projects to clusters and nodes, from the microversion that added it."""

from functools import cached_property
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request

from plans.api.operations import Operating
from plans.operations.base import RequestOptions
from watcher_site.api.permissions import OwnedByProjects
from watcher_site.api.versions import TENANTS, used_by


class OwnedFromTenants(Operating, OwnedByProjects):
    """A mixin for views of operations on objects that belong to projects from `TENANTS` on.

    In earlier versions, they require a permission on the model.
    """

    shown_project = "project_id"

    @cached_property
    def projects(self) -> frozenset[str]:
        return super().projects if self.knows_projects else frozenset()

    @property
    def knows_projects(self) -> bool:
        return used_by(self.request) >= TENANTS

    def get_queryset(self) -> QuerySet[Any]:
        if self.knows_projects:
            return super().get_queryset()
        found: QuerySet[Any] = super(OwnedByProjects, self).get_queryset()  # type: ignore[misc]
        return found

    def project_request_options(
        self: Any, request: Request, plan_only: bool, project: str, *, creates: bool = False, record: Any = None
    ) -> RequestOptions:
        """Return the options of an operation. With permission on the model, plan_only needs no permission on plans."""
        if project in self.projects:
            return super().project_request_options(request, plan_only, project, creates=creates, record=record)
        found: RequestOptions = self.request_options(request, plan_only)
        return found

    def filter_project_id(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(project_id=value)


def project_body_field(help_text: str) -> serializers.CharField:
    return serializers.CharField(max_length=255, required=False, allow_blank=True, help_text=help_text)
