"""``/v1/stacks/{name}/{id}/resources``: read and mark the resources of stacks, in the format of Heat."""

import re
from collections import defaultdict
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Stack, StackResource, StackStatus
from cluster.stacks.lookup import missing_resource, resources_named, stacks_at, stacks_within
from plans.api.marks import Marking, ResourceMarking
from plans.api.servers import refuse_unknown_fields
from plans.api.stacks import MARK_STACK, STACKS, VIEW_STACK, check_statuses, stack_address
from watcher_site.api.paging import refuse_unknown_arguments
from watcher_site.api.permissions import OwnedByProjects
from watcher_site.api.serializers import LinkSerializer, ResourceSerializer, Row
from watcher_site.api.views import ResourceView
from watcher_site.refusals import Invalid, NotFound

DEPTH = re.compile("[0-9]{1,3}")


class StackResourceSerializer(ResourceSerializer):
    id = serializers.UUIDField(help_text="id that actions use as their target")
    resource_name = serializers.CharField()
    logical_resource_id = serializers.CharField(help_text="the same as resource_name")
    physical_resource_id = serializers.CharField(help_text="id of the server or of the nested stack; empty: none")
    resource_type = serializers.ChoiceField(StackResource.Type.choices)
    resource_status = serializers.ChoiceField(StackStatus.choices)
    resource_status_reason = serializers.CharField()
    required_by = serializers.ListField(
        child=serializers.CharField(), help_text="resources that depend on this resource"
    )
    parent_resource = serializers.CharField(
        allow_null=True, help_text="resource of the parent stack that contains the stack of this resource"
    )
    creation_time = serializers.DateTimeField()
    updated_time = serializers.DateTimeField(allow_null=True)
    links = LinkSerializer(many=True, help_text="links to the resource, to its stack, and to the nested stack")

    class Meta:
        collection = "resources"
        columns = {
            "id": "uuid",
            "resource_name": "name",
            "physical_resource_id": "physical_id",
            "resource_type": "type",
            "resource_status": "status",
            "resource_status_reason": "status_reason",
            "parent_resource": "stack__parent_resource__name",
            "creation_time": "created_at",
            "updated_time": "updated_at",
            "stack_key": "stack_id",
            "stack_name": "stack__name",
            "stack_uuid": "stack__uuid",
        }
        same = {"logical_resource_id": "resource_name"}
        computed = ("required_by", "links")
        hidden = ("stack_key", "stack_name", "stack_uuid")

    @classmethod
    def add_required_by(cls, rows: list[Row]) -> None:
        """Add the names of the dependents of each resource, with one query for all rows."""
        stacks = {row["stack_key"] for row in rows}
        neighbours = StackResource.objects.present().filter(stack__in=stacks).exclude(depends_on=[])
        needed: dict[tuple[int, str], list[str]] = defaultdict(list)
        for stack, name, before in neighbours.order_by("name").values_list("stack", "name", "depends_on"):
            for other in before:
                needed[stack, other].append(name)
        for row in rows:
            row["required_by"] = needed[row["stack_key"], row["resource_name"]]

    @classmethod
    def add_links(cls, rows: list[Row], host: str) -> None:
        within = names_of_nested_stacks([row["id"] for row in rows if row["resource_type"] in StackResource.NESTING])
        for row in rows:
            stack = stack_address(host, row["stack_name"], row["stack_uuid"])
            row["physical_resource_id"] = row["physical_resource_id"] or ""
            row["links"] = [
                {"href": f"{stack}/resources/{row['resource_name']}", "rel": "self"},
                {"href": stack, "rel": "stack"},
            ]
            if name := within.get(row["physical_resource_id"]):
                nested = stack_address(host, name, row["physical_resource_id"])
                row["links"].append({"href": nested, "rel": "nested"})


def names_of_nested_stacks(resources: list[UUID]) -> dict[str, str]:
    """Return the names of the stacks within these resources, by the id of the stack."""
    found = Stack.objects.present().filter(parent_resource__uuid__in=resources) if resources else Stack.objects.none()
    return {str(uuid): name for uuid, name in found.values_list("uuid", "name")}


class ResourcesSerializer(serializers.Serializer[Any]):
    resources = StackResourceSerializer(many=True)
    next = serializers.URLField(required=False, help_text="URL of the next page, if this page is full")


class StackResourceView(ResourceMarking, OwnedByProjects, ResourceView):
    """The resources of a stack, which the path identifies by name and id. Users who may see the stack see them."""

    since = STACKS
    serializer_class = StackResourceSerializer
    model = StackResource
    title = "Resource"
    policy = "resource"
    identifiers = ("uuid", "name")
    filters = ["name", "type", "status", "nested_depth"]
    filter_schemas = {"nested_depth": {"type": "integer", "minimum": 0, "maximum": 999}}
    repeatable = frozenset({"name", "type", "status"})
    sort_keys = {"resource_name": "name", "resource_status": "status"}
    answers = {"detailed_list": (200, ResourcesSerializer)}
    bodies = Marking.mark_bodies
    permissions_required = {**dict.fromkeys(("detailed_list", "retrieve"), VIEW_STACK), "mark": MARK_STACK}
    stack: Stack

    def detailed_list(self, request: Request, stack_name: str = "", identifier: str = "") -> Response:
        """List the resources of a stack; with nested_depth, also those of that many levels of nested stacks."""
        self.stack = self.find_stack(request, stack_name, identifier)
        return self.answer_list(request, detailed=True)

    def retrieve(self, request: Request, identifier: str, stack_name: str = "", resource: str = "") -> Response:
        """Show a resource of a stack by its name, its physical id or its reference id."""
        refuse_unknown_arguments(request.query_params, ())
        stack = self.find_stack(request, stack_name, identifier)
        rows = self.read(resources_named(stack, resource), detailed=True)
        if not rows:
            raise NotFound(missing_resource(stack, resource))
        return Response(rows[0])

    def find_stack(self, request: Request, name: str, identifier: str) -> Stack:
        """Return the stack of the path if the user has the permission on its resources. Raises: `NotFound`."""
        stacks = Stack.objects.present()
        if not request.user.has_perm(VIEW_STACK):
            stacks = stacks.filter(project_id__in=self.projects)
        stack: Stack | None = stacks_at(stacks, name, identifier).first()
        if stack is None:
            raise NotFound(f"Stack {identifier} could not be found")
        self.check_object_permissions(request, stack)
        return stack

    def get_queryset(self) -> QuerySet[Any]:
        depth = read_depth(self.request.query_params.get("nested_depth", "0"))
        stacks = stacks_within(self.stack, depth) if depth else [self.stack.pk]
        return StackResource.objects.present().filter(stack__in=stacks)

    def address_of_list(self, detailed: bool) -> str:
        return f"{stack_address(self.host(), self.stack.name, self.stack.uuid)}/resources"

    def filter_name(self, queryset: QuerySet[StackResource], value: list[str]) -> QuerySet[StackResource]:
        return queryset.filter(name__in=value)

    def filter_type(self, queryset: QuerySet[StackResource], value: list[str]) -> QuerySet[StackResource]:
        refuse_unknown_fields("type", value, StackResource.Type.values)
        return queryset.filter(type__in=value)

    def filter_status(self, queryset: QuerySet[StackResource], value: list[str]) -> QuerySet[StackResource]:
        return queryset.filter(status__in=check_statuses("status", value))

    def filter_nested_depth(self, queryset: QuerySet[StackResource], value: str) -> QuerySet[StackResource]:
        """Return the queryset: `get_queryset` applies this filter."""
        return queryset


def read_depth(value: str) -> int:
    """Return the requested number of levels of nested stacks. Raises: `Invalid`."""
    if not DEPTH.fullmatch(value):
        raise Invalid(f"Invalid input for field/attribute nested_depth. Value: '{value}'. It must be from 0 to 999.")
    return int(value)
