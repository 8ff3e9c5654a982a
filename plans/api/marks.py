"""Requests that mark objects as unhealthy, in the format of Heat.

See docs/compatibility.md, "Marks of unhealthy resources".
"""

from contextlib import suppress
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Stack, StackResource
from cluster.models.stacks import MARKED
from cluster.operations.marks import Mark, find_mark
from cluster.stacks.lookup import find_resource, resources_named, stacks_at
from plans.operations.marks import REASON, mark
from watcher_site.api.versions import Version
from watcher_site.messages import STATUS_MESSAGE_LENGTH
from watcher_site.refusals import Invalid
from watcher_site.request_context import caller_of

MARK = "mark_unhealthy"
FLAGS = {"true": True, "false": False}
# The version that added marks.
MARKS: Version = (1, 11)


@extend_schema_field(
    {"oneOf": [{"type": "boolean"}, {"type": "string", "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"}]}
)
class MarkField(serializers.BooleanField):
    """A boolean, or the text true or false in any case, as Heat accepts it."""


class MarkBodySerializer(serializers.Serializer[Any]):
    """The schema of the body in the OpenAPI document; `read_mark` parses the body."""

    mark_unhealthy = MarkField(help_text="true sets the mark, false removes it")
    resource_status_reason = serializers.CharField(
        required=False,
        allow_blank=True,
        help_text=f'truncated at a word to {STATUS_MESSAGE_LENGTH} characters; default: "{MARKED}"',
    )

    argument = "health"
    since: dict[str, Version] = {}


class MarkSerializer(serializers.Serializer[Any]):
    """The current mark on the health of an object."""

    unhealthy = serializers.BooleanField(help_text="whether a user marked the object as unhealthy")
    reason = serializers.CharField(allow_null=True)
    object_type = serializers.ChoiceField(
        ["server", "node", "resource", "stack"],
        help_text="type of the marked object; for a server of a node or of a stack, the node or the resource",
    )
    object_id = serializers.UUIDField()
    object_name = serializers.CharField()


def read_mark(document: Any) -> tuple[bool, str]:
    """Return whether a body marks an object as unhealthy, and the reason, by default empty.

    Raises:
        Invalid: the body is invalid. The messages are those of Heat, if it has one.
    """
    if not isinstance(document, dict):
        raise Invalid(f"An object with {MARK}, and {REASON} if there is one, is expected.")
    if strays := sorted(document.keys() - {MARK, REASON}):
        raise Invalid(f"Invalid keys in resource mark unhealthy {{{', '.join(map(repr, strays))}}}")
    if MARK not in document:
        raise Invalid(f"Missing mandatory ({MARK}) key from mark unhealthy request")
    return read_mark_flag(document[MARK]), document.get(REASON, "")


def read_mark_flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in FLAGS:
        return FLAGS[value.lower()]
    shown = "null" if value is None else value
    raise Invalid(f'Unrecognized value "{shown}" for "{MARK}", acceptable values are: true, false.')


def mark_event(kind: str, document: Any) -> str:
    """Return the event of history for a request to mark an object or to remove the mark."""
    is_removal = False
    with suppress(Invalid):
        is_removal = not read_mark(document)[0]
    return f"{kind}.{'clear' if is_removal else 'mark'}"


def mark_row(found: Mark) -> dict[str, Any]:
    return {name: getattr(found, name) for name in MarkSerializer._declared_fields}


class MarkEvents:
    """A view whose patches have two events of history: a mark, and its removal."""

    def history_event(self: Any) -> str:
        is_mark = self.action == "mark"
        return mark_event(self.policy, self.document()) if is_mark else super().history_event()  # type: ignore[misc]


class Marking(MarkEvents):
    """A view of objects that can be marked. ``permissions_required`` has the permission for ``mark``."""

    mark_bodies = {"mark": MarkBodySerializer}
    mark_answers = dict.fromkeys(("mark", "show_health"), (200, MarkSerializer))
    mark_versions = dict.fromkeys(("mark", "show_health"), MARKS)

    def show_health(self: Any, request: Request, identifier: str, **_: Any) -> Response:
        """Show whether the object is marked as unhealthy."""
        self.require_version(request)
        return Response(mark_row(find_mark(self.get_object(request, identifier))))

    def mark(self: Any, request: Request, identifier: str, **_: Any) -> Response:
        """Mark the object as unhealthy, or remove the mark. The next repair replaces a marked object."""
        self.require_version(request)
        unhealthy, reason = read_mark(request.data)
        marked = self.get_object(request, identifier)
        return Response(mark_row(mark(marked, unhealthy, reason, caller_of(request))))


class ResourceMarking(MarkEvents):
    """A view of resources of stacks, which are marked by PATCH of their own path."""

    def mark(self: Any, request: Request, identifier: str, stack_name: str = "", resource: str = "") -> Response:
        """Mark a resource as unhealthy, or remove the mark. The next update of its stack replaces a marked resource.

        The path contains its name, its physical id or its reference id.
        """
        unhealthy, reason = read_mark(request.data)
        found = find_resource(self.find_stack(request, stack_name, identifier), resource)
        mark(found, unhealthy, reason, caller_of(request))
        return Response(self.show(found))

    def find_present(self: Any, identifier: str) -> StackResource | None:
        """Return the resource of the path, for history. ``identifier`` identifies its stack."""
        stack = stacks_at(Stack.objects.present(), self.kwargs["stack_name"], identifier).first()
        found: StackResource | None = resources_named(stack, self.kwargs["resource"]).first() if stack else None
        return found
