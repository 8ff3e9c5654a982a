"""``…/stacks`` and ``…/resources`` of the Heat mount: lists, details, lookups and marks.

See docs/compatibility.md, "Stacks and stack resources".
"""

from contextlib import suppress
from typing import Any
from uuid import UUID

import orjson
from django.db.models import Q, QuerySet
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Stack, StackResource
from cluster.stacks.lookup import find_resource, stacks_within
from plans.api.marks import mark_event, read_mark
from plans.mounts.orchestration.views import TYPES, OrchestrationView, matching_statuses
from plans.operations.marks import mark
from plans.operations.stack_progress import shown_status_condition, with_progress
from watcher_site.api.paging import Page, SortKey, read_limit, sort_values
from watcher_site.api.views import describe_exception, is_refusal
from watcher_site.database.records import parse_uuid
from watcher_site.history.recording import record_refusal
from watcher_site.refusals import Invalid, NotFound, Refused
from watcher_site.request_context import caller_of

SORT_KEYS = {
    "stack_name": "name",
    "name": "name",
    "stack_status": "status",
    "status": "status",
    "creation_time": "created_at",
    "created_at": "created_at",
    "updated_time": "updated_at",
    "updated_at": "updated_at",
}
PAGING = ("limit", "marker", "sort_keys", "sort_dir")
FLAGS = ("show_nested", "show_deleted", "show_hidden", "global_tenant", "with_count")
# Stacks have no tags, so these filters match all of them.
TAGS = ("not_tags", "not_tags_any")
FILTERS = ("id", "name", "stack_name", "action", "status", "tenant", "username", "owner_id", "tags", "tags_any")
FLAG_VALUES = {"true": True, "1": True, "false": False, "0": False}
RESOURCE_FILTERS = ("name", "type", "status", "action", "physical_resource_id", "id", "uuid")
# The body that clients of Heat expect from requests without a result.
NULL = orjson.Fragment(b"null")


class StackList(OrchestrationView):
    policy = "stacks:index"

    def get(self, request: Request, project: str) -> Response:
        query = request.query_params
        if strays := sorted(set(query) - {*PAGING, *FLAGS, *TAGS, *FILTERS}):
            raise Invalid(f"Invalid parameters {', '.join(strays)}")
        flags = {name: read_heat_flag(name, query.get(name, "false")) for name in FLAGS}
        found = self.filter_stacks(self.listed_stacks(flags))
        page = read_page(query)
        place = None
        if page.marker is not None:
            marked = self.listed_stacks({**flags, "show_nested": True}).filter(uuid=read_marker(page.marker))
            place = sort_values(marked, page, f"The Stack ({page.marker}) could not be found.")
        answer: dict[str, Any] = {"stacks": [self.shapes.stack(stack) for stack in page.rows(found, place, list)]}
        return Response({**answer, "count": found.count()} if flags["with_count"] else answer)

    def listed_stacks(self, flags: dict[str, bool]) -> QuerySet[Any]:
        """Return the stacks of a list: of the project, or of all projects that the user may see."""
        found = Stack.objects.all() if flags["show_deleted"] else Stack.objects.present()
        found = found if flags["show_nested"] else found.roots()
        if not flags["global_tenant"]:
            found = found.filter(self.project_condition)
        elif not self.sees_all:
            found = found.filter(project_id__in=self.projects)
        return with_progress(found.select_related("parent_resource__stack"))

    def filter_stacks(self, stacks: QuerySet[Any]) -> QuerySet[Any]:
        conditions = {
            "id": lambda values: Q(uuid__in=[uuid for uuid in map(parse_uuid, values) if uuid]),
            "name": lambda values: Q(name__in=values),
            "stack_name": lambda values: Q(name__in=values),
            "action": lambda values: shown_status_condition(matching_statuses(0, values)),
            "status": lambda values: shown_status_condition(matching_statuses(1, values)),
            "tenant": lambda values: Q(project_id__in=values),
            "username": lambda values: Q(user_id__in=values),
            "owner_id": lambda values: Q(
                parent_resource__stack__uuid__in=[uuid for uuid in map(parse_uuid, values) if uuid]
            ),
            "tags": lambda values: Q(pk__in=[]),
            "tags_any": lambda values: Q(pk__in=[]),
        }
        for name, condition in conditions.items():
            if values := self.request.query_params.getlist(name):
                stacks = stacks.filter(condition(values))
        return stacks


class StackLookup(OrchestrationView):
    """The lookup of a stack by its name or id: a redirect to its address, with the rest of the path."""

    policy = "stacks:lookup"

    def get(self, request: Request, project: str, name: str, rest: str = "") -> Response:
        stack = self.find_stack(name)
        query = request.META.get("QUERY_STRING", "")
        location = f"{self.shapes.url(stack)}{rest}{'?' if query else ''}{query}"
        return Response(status=302, headers={"Location": location})


class StackItem(OrchestrationView):
    policy = "stacks:show"

    def get(self, request: Request, project: str, name: str, identifier: str) -> Response:
        return Response({"stack": self.shapes.whole_stack(self.find_stack(identifier, name))})


class StackTemplate(OrchestrationView):
    policy = "stacks:template"

    def get(self, request: Request, project: str, name: str, identifier: str) -> Response:
        return Response(self.find_stack(identifier, name).template)


class NotOffered(OrchestrationView):
    """The unsupported parts of Heat's API below a stack, which would otherwise be read as names of stacks."""

    policy = "stacks:lookup"

    def get(self, request: Request, project: str, name: str, part: str) -> Response:
        stack = self.find_stack(name)
        raise NotFound(f"Stack {stack.name}: {part} of stacks are not offered here.")


def read_page(query: Any) -> Page:
    """Return the page that a query requests. Raises: `Invalid`."""
    names = query.getlist("sort_keys") or ["created_at"]
    if strays := [name for name in names if name not in SORT_KEYS]:
        raise Invalid(f"Invalid sort key: {strays[0]}")
    direction = query.get("sort_dir", "asc" if query.getlist("sort_keys") else "desc")
    if direction not in ("asc", "desc"):
        raise Invalid(f"Unknown sort direction, must be 'desc' or 'asc': {direction}")
    columns = dict.fromkeys(SORT_KEYS[name] for name in names)
    keys = tuple(SortKey(column, column, direction == "desc") for column in columns)
    return Page(read_limit(query.get("limit")), query.get("marker"), keys)


def read_heat_flag(name: str, value: str) -> bool:
    if value.lower() not in FLAG_VALUES:
        raise Invalid(f'Unrecognized value "{value}" for "{name}", acceptable values are: true, false.')
    return FLAG_VALUES[value.lower()]


def read_marker(text: str) -> UUID:
    found = parse_uuid(text)
    if found is None:
        raise Invalid(f"marker: {text} is not the id of a stack.")
    return found


class ResourceList(OrchestrationView):
    policy = "resource:index"

    def get(self, request: Request, project: str, name: str, identifier: str) -> Response:
        query = request.query_params
        if strays := sorted(set(query) - {"nested_depth", "with_detail", *RESOURCE_FILTERS}):
            raise Invalid(f"Invalid parameters {', '.join(strays)}")
        read_heat_flag("with_detail", query.get("with_detail", "false"))
        depth = read_heat_depth(query.get("nested_depth", "0"))
        stack = self.find_stack(identifier, name)
        known = with_stacks(StackResource.objects.present().filter(stack__in=stacks_within(stack, depth)))
        every = list(known.order_by("stack__pk", "name", "pk"))
        kept = [one for one in every if matches_query(one, query)]
        return Response({"resources": self.shapes.resources(kept, every)})


class ResourceItem(OrchestrationView):
    policy = "resource:show"
    policies = {"PATCH": "resource:mark_unhealthy"}

    def handle_exception(self, problem: Exception) -> Response:
        response = super().handle_exception(problem)
        if self.request.method == "PATCH" and is_refusal(problem, response):
            self.record_refused_change(problem)
        return response

    def record_refused_change(self, problem: Exception) -> None:
        """Record in history that marking this resource was refused, if there is such a resource."""
        named, stack = self.kwargs["resource"], None
        found: Any = None
        with suppress(Refused):
            stack = self.find_stack(self.kwargs["identifier"], self.kwargs["name"])
            found = find_resource(stack, named)
        record_refusal(
            mark_event("resource", self.document), found or named, describe_exception(problem), within=stack
        )

    @property
    def document(self) -> Any:
        """The body of the request, or None if it is malformed."""
        try:
            return self.request.data
        except APIException:
            return None

    def get(self, request: Request, project: str, name: str, identifier: str, resource: str) -> Response:
        found = find_resource(self.find_stack(identifier, name), resource)
        beside = list(with_stacks(StackResource.objects.present().filter(stack=found.stack)))
        [shape] = self.shapes.resources([one for one in beside if one.pk == found.pk], beside)
        return Response({"resource": {**shape, "description": "", "attributes": {}}})

    def patch(self, request: Request, project: str, name: str, identifier: str, resource: str) -> Response:
        """Mark a resource as unhealthy, or remove the mark."""
        unhealthy, reason = read_mark(request.data)
        found = find_resource(self.find_stack(identifier, name), resource)
        mark(found, unhealthy, reason, caller_of(request))
        return Response(NULL)


def with_stacks(resources: QuerySet[Any]) -> QuerySet[Any]:
    # Otherwise the template of the stack would be read with each resource.
    large = ("stack__template", "stack__parent_resource__properties", "stack__parent_resource__stack__template")
    return resources.select_related("stack__parent_resource__stack").defer("properties", *large)


def matches_query(resource: StackResource, query: Any) -> bool:
    """Return whether a resource matches the filters of a query, each of which may be repeated."""
    held: dict[str, list[str | None]] = {
        "name": [resource.name],
        "type": [resource.type, TYPES[StackResource.Type(resource.type)]],
        "physical_resource_id": [resource.physical_id],
        "id": [str(resource.uuid)],
        "uuid": [str(resource.uuid)],
    }
    statuses = [
        matching_statuses(part, query.getlist(name)) for part, name in enumerate(("action", "status")) if name in query
    ]
    return all(resource.status in wanted for wanted in statuses) and all(
        set(values) & set(query.getlist(name)) for name, values in held.items() if name in query
    )


def read_heat_depth(text: str) -> int:
    """Return the number of levels of nested stacks in a query. Raises: `Invalid`."""
    if text.lower() in ("true", "false"):
        return 1000 if text.lower() == "true" else 0
    if not (text.isascii() and text.isdigit()):
        raise Invalid(f'nested_depth: "{text}" is not a number.')
    return int(text[:9])
