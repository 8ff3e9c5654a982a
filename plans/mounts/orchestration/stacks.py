"""``…/stacks``: lists, single stacks, and the way from a name to where a stack is."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Stack
from plans.mounts.orchestration.shapes import statuses_having
from plans.mounts.orchestration.views import OrchestrationView
from plans.operations.stack_progress import having_status, with_progress
from watcher_site.api.paging import Page, SortKey, read_limit, sort_values
from watcher_site.database.records import parse_uuid
from watcher_site.refusals import Invalid, NotFound

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
FLAG_WORDS = {"true": True, "1": True, "false": False, "0": False}


class StackList(OrchestrationView):
    def get(self, request: Request, project: str) -> Response:
        query = request.query_params
        if strays := sorted(set(query) - {*PAGING, *FLAGS, *TAGS, *FILTERS}):
            raise Invalid(f"Invalid parameters {', '.join(strays)}")
        flags = {name: read_heat_flag(name, query.get(name, "false")) for name in FLAGS}
        found = self.filtered(self.listed(flags))
        page = read_page(query)
        place = None
        if page.marker is not None:
            marked = self.listed({**flags, "show_nested": True}).filter(uuid=read_marker(page.marker))
            place = sort_values(marked, page, f"The Stack ({page.marker}) could not be found.")
        answer: dict[str, Any] = {"stacks": [self.shapes.stack(stack) for stack in page.cut(found, place)]}
        return Response({**answer, "count": found.count()} if flags["with_count"] else answer)

    def listed(self, flags: dict[str, bool]) -> QuerySet[Any]:
        """Return the stacks that a list is of: those of the project, or of all that this person sees."""
        found = Stack.objects.all() if flags["show_deleted"] else Stack.objects.present()
        found = found if flags["show_nested"] else found.roots()
        if not flags["global_tenant"]:
            found = found.filter(self.own)
        elif not self.sees_all:
            found = found.filter(project_id__in=self.projects)
        return with_progress(found.select_related("parent_resource__stack"))

    def filtered(self, stacks: QuerySet[Any]) -> QuerySet[Any]:
        conditions = {
            "id": lambda values: Q(uuid__in=[uuid for uuid in map(parse_uuid, values) if uuid]),
            "name": lambda values: Q(name__in=values),
            "stack_name": lambda values: Q(name__in=values),
            "action": lambda values: having_status(statuses_having(0, values)),
            "status": lambda values: having_status(statuses_having(1, values)),
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
    """A stack by its name or its id alone: where it is, as Heat's clients ask for it, and what follows the path."""

    def get(self, request: Request, project: str, name: str, rest: str = "") -> Response:
        stack = self.find_stack(name)
        query = request.META.get("QUERY_STRING", "")
        location = f"{self.shapes.url(stack)}{rest}{'?' if query else ''}{query}"
        return Response(status=302, headers={"Location": location})


class StackItem(OrchestrationView):
    def get(self, request: Request, project: str, name: str, identifier: str) -> Response:
        return Response({"stack": self.shapes.whole_stack(self.find_stack(identifier, name))})


class StackTemplate(OrchestrationView):
    def get(self, request: Request, project: str, name: str, identifier: str) -> Response:
        return Response(self.find_stack(identifier, name).template)


class NotOffered(OrchestrationView):
    """The parts of Heat's API below a stack that this site does not offer; else clients would read a stack's name."""

    def get(self, request: Request, project: str, name: str, part: str) -> Response:
        stack = self.find_stack(name)
        raise NotFound(f"Stack {stack.name}: {part} of stacks are not offered here.")


def read_page(query: Any) -> Page:
    """Raises: `Invalid`."""
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
    if value.lower() not in FLAG_WORDS:
        raise Invalid(f'Unrecognized value "{value}" for "{name}", acceptable values are: true, false.')
    return FLAG_WORDS[value.lower()]


def read_marker(text: str) -> UUID:
    found = parse_uuid(text)
    if found is None:
        raise Invalid(f"marker: {text} is no id of a stack.")
    return found
