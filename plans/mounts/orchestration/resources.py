"""``…/stacks/{name}/{id}/resources`` of the Heat mount: lists, single resources, and marks.

See docs/compatibility.md, "Stacks and stack resources".
"""

from contextlib import suppress
from typing import Any

import orjson
from django.db.models import QuerySet
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import StackResource
from cluster.stacks.lookup import find_resource, stacks_within
from plans.api.marks import mark_event, read_mark
from plans.mounts.orchestration.shapes import TYPES, statuses_having
from plans.mounts.orchestration.stacks import read_heat_flag
from plans.mounts.orchestration.views import OrchestrationView
from plans.operations.marks import mark
from watcher_site.api.views import is_refusal, why
from watcher_site.history.refusals import record_refusal
from watcher_site.refusals import Invalid, Refused
from watcher_site.request_context import caller_of

FILTERS = ("name", "type", "status", "action", "physical_resource_id", "id", "uuid")
# What Heat's clients read where there is nothing to be said.
NULL = orjson.Fragment(b"null")


class ResourceList(OrchestrationView):
    def get(self, request: Request, project: str, name: str, identifier: str) -> Response:
        query = request.query_params
        if strays := sorted(set(query) - {"nested_depth", "with_detail", *FILTERS}):
            raise Invalid(f"Invalid parameters {', '.join(strays)}")
        read_heat_flag("with_detail", query.get("with_detail", "false"))
        depth = read_heat_depth(query.get("nested_depth", "0"))
        stack = self.find_stack(identifier, name)
        known = with_stacks(StackResource.objects.present().filter(stack__in=stacks_within(stack, depth)))
        every = list(known.order_by("stack__pk", "name", "pk"))
        kept = [one for one in every if keeps(one, query)]
        return Response({"resources": self.shapes.resources(kept, every)})


class ResourceItem(OrchestrationView):
    def handle_exception(self, problem: Exception) -> Response:
        response = super().handle_exception(problem)
        if self.request.method == "PATCH" and is_refusal(problem, response):
            self.note_refusal(problem)
        return response

    def note_refusal(self, problem: Exception) -> None:
        """Record in history that marking this resource was refused, if there is such a resource."""
        named, stack = self.kwargs["resource"], None
        found: Any = None
        with suppress(Refused):
            stack = self.find_stack(self.kwargs["identifier"], self.kwargs["name"])
            found = find_resource(stack, named)
        record_refusal(mark_event("resource", self.document), found or named, why(problem), within=stack)

    @property
    def document(self) -> Any:
        """The body of the request; of one that makes no sense nothing."""
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
        """Say that a resource is unhealthy, or take that back."""
        unhealthy, reason = read_mark(request.data)
        found = find_resource(self.find_stack(identifier, name), resource)
        mark(found, unhealthy, reason, caller_of(request))
        return Response(NULL)


def with_stacks(resources: QuerySet[Any]) -> QuerySet[Any]:
    # Of a stack with many resources each of them would bring its template along.
    large = ("stack__template", "stack__parent_resource__properties", "stack__parent_resource__stack__template")
    return resources.select_related("stack__parent_resource__stack").defer("properties", *large)


def keeps(resource: StackResource, query: Any) -> bool:
    """Return whether a resource matches the filters of a query, of which each may be given several times."""
    held: dict[str, list[str | None]] = {
        "name": [resource.name],
        "type": [resource.type, TYPES[StackResource.Type(resource.type)]],
        "physical_resource_id": [resource.physical_id],
        "id": [str(resource.uuid)],
        "uuid": [str(resource.uuid)],
    }
    statuses = [
        statuses_having(part, query.getlist(name)) for part, name in enumerate(("action", "status")) if name in query
    ]
    return all(resource.status in wanted for wanted in statuses) and all(
        set(values) & set(query.getlist(name)) for name, values in held.items() if name in query
    )


def read_heat_depth(text: str) -> int:
    """Raises: `Invalid`."""
    if text.lower() in ("true", "false"):
        return 1000 if text.lower() == "true" else 0
    if not (text.isascii() and text.isdigit()):
        raise Invalid(f'nested_depth: "{text}" is no number.')
    return int(text[:9])
