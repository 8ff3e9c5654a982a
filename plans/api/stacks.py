"""``/v1/stacks``: read, create, update and delete stacks."""

from typing import Any

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.drivers.server_properties import select_properties
from cluster.models import Stack, StackStatus
from cluster.models.stacks import MAX_TIMEOUT, NAME_LENGTH
from cluster.stacks.lookup import stacks_at, stacks_named
from cluster.stacks.templates.schemas import STACK_NAME
from cluster.stacks.templates.schemas import TEMPLATE as TEMPLATE_VALIDATOR
from cluster.stacks.templates.templates import normalise, servers_of
from plans.api.marks import Marking
from plans.api.operations import PLAN_ONLY_PARAMETER, Operating, OperationSerializer, OptionsSerializer
from plans.api.servers import refuse_unknown_fields
from plans.operations.stack_progress import shown_status, shown_status_condition, starting_operations
from plans.operations.stacks import create_stack, delete_stack, update_stack
from watcher_site.api.bodies import FLAG, DescribedField, WholeField, read_body
from watcher_site.api.errors import NotAcceptableHere
from watcher_site.api.paging import read_flag, refuse_unknown_arguments
from watcher_site.api.permissions import OwnedByProjects
from watcher_site.api.serializers import ResourceSerializer, Row, links_field
from watcher_site.api.versions import TENANTS, used_by
from watcher_site.api.views import ResourceView

# The version that added stacks.
STACKS = (1, 11)
VIEW_STACK = "cluster.view_stack"
MARK_STACK = "cluster.mark_stack"
TEMPLATE_SCHEMA = {"oneOf": [{"type": "string", "minLength": 1}, TEMPLATE_VALIDATOR.schema]}
TEMPLATE = "an object, or text in JSON or YAML"


class StackSerializer(ResourceSerializer):
    id = serializers.UUIDField()
    stack_name = serializers.CharField()
    stack_status = serializers.ChoiceField(StackStatus.choices)
    stack_status_reason = serializers.CharField()
    description = serializers.CharField(help_text="description of the template")
    project = serializers.CharField(help_text="project of the stack")
    creation_time = serializers.DateTimeField()
    updated_time = serializers.DateTimeField(allow_null=True)
    deletion_time = serializers.DateTimeField(allow_null=True)
    links = links_field()
    stack_owner = serializers.CharField(help_text="name of the user who requested the stack")
    parent = serializers.UUIDField(  # type: ignore[assignment]
        allow_null=True, help_text="stack that contains this stack"
    )

    timeout_mins = serializers.IntegerField(
        allow_null=True, help_text="time limit of an operation in minutes; null: the setting of the site"
    )

    class Meta:
        collection = "stacks"
        short = (
            *("id", "stack_name", "stack_status", "stack_status_reason", "description", "project"),
            *("creation_time", "updated_time", "deletion_time", "links"),
        )
        columns = {
            "id": "uuid",
            "stack_name": "name",
            "stack_status": "status",
            "stack_status_reason": "status_reason",
            "description": KeyTextTransform("description", "template"),
            "project": "project_id",
            "creation_time": "created_at",
            "updated_time": "updated_at",
            "deletion_time": "deleted_at",
            "stack_owner": "user_id",
            "parent": "parent_resource__stack__uuid",
        }
        computed = ("links",)

    @classmethod
    def add_links(cls, rows: list[Row], host: str) -> None:
        for row in rows:
            row["description"] = row["description"] or ""
            row["links"] = [{"href": stack_address(host, row["stack_name"], row["id"]), "rel": "self"}]


def stack_address(host: str, name: str, uuid: Any) -> str:
    return f"{host}/v1/stacks/{name}/{uuid}"


class TemplateSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    description = serializers.CharField()
    resources = serializers.DictField(child=serializers.DictField(), help_text="resources by name")


def check_statuses(field: str, wanted: list[str]) -> list[str]:
    found = [status.upper() for status in wanted]
    refuse_unknown_fields(field, found, StackStatus.values)
    return found


def timeout_field(default: str) -> Any:
    help_text = f"time limit of an operation in minutes, without its pauses; default: {default}"
    return WholeField(required=False, min_value=1, max_value=MAX_TIMEOUT, help_text=help_text)


class StackOperationSerializer(OperationSerializer):
    stack = serializers.UUIDField()


@extend_schema_field({"type": "string", "maxLength": NAME_LENGTH, "pattern": f"^{STACK_NAME.pattern}$"})
class StackNameField(serializers.CharField):
    """The name of a stack, which `plans.operations.stacks` validates."""


class NewStackSerializer(OptionsSerializer):
    """The body of POST."""

    name = StackNameField(max_length=NAME_LENGTH, trim_whitespace=False)
    template = DescribedField(TEMPLATE_SCHEMA, help_text=TEMPLATE)
    project_id = serializers.CharField(
        max_length=NAME_LENGTH, required=False, help_text="default: the user's only project"
    )
    timeout_mins = timeout_field("the setting of the site")

    argument = "stack"


class StackUpdateSerializer(OptionsSerializer):
    """The body of PUT."""

    template = DescribedField(TEMPLATE_SCHEMA, required=False, help_text=f"{TEMPLATE}; default: the current template")
    timeout_mins = timeout_field("the current value")

    argument = "stack"


def refuse_later_properties(request: Request, template: Any) -> None:
    """Refuse a template with properties of servers that a later microversion added. Raises: `NotAcceptableHere`."""
    if template is None or used_by(request) >= TENANTS:
        return
    for path, properties in servers_of(normalise(template)):
        for name in select_properties(properties):
            raise NotAcceptableHere(TENANTS, ".".join(map(str, ("template", *path, name))))


class StackView(Marking, Operating, OwnedByProjects, ResourceView):
    since = STACKS
    serializer_class = StackSerializer
    model = Stack
    title = "Stack"
    policy = "stack"
    shown_project = "project"
    identifiers = ("uuid", "name")
    marker_type = OpenApiTypes.STR
    filters = ["name", "status", "project_id", "show_nested"]
    filter_schemas = {"show_nested": FLAG}
    repeatable = frozenset({"name", "status"})
    sort_keys = {
        "stack_name": "name",
        "stack_status": "status",
        "creation_time": "created_at",
        "updated_time": "updated_at",
    }
    policy_actions = ResourceView.policy_actions | {"look_up": "lookup"}
    operates_on = "stack"
    bodies = {"create": NewStackSerializer, "update": StackUpdateSerializer, **Marking.mark_bodies}
    arguments = {"destroy": [PLAN_ONLY_PARAMETER]}
    answers = {
        "look_up": (200, StackSerializer),
        "template": (200, TemplateSerializer),
        **dict.fromkeys(("create", "update", "destroy"), (202, StackOperationSerializer)),
        **Marking.mark_answers,
    }
    actions_since = Marking.mark_versions
    permissions_required = {"mark": MARK_STACK}

    def retrieve(self, request: Request, identifier: str, stack_name: str | None = None) -> Response:
        """Show a stack."""
        return super().retrieve(request, identifier)

    def look_up(self, request: Request, identifier: str) -> Response:
        """Show the stack with this id, or else with this name."""
        return super().retrieve(request, identifier)

    def template(self, request: Request, stack_name: str, identifier: str) -> Response:
        """Show the template of a stack, with defaults for omitted properties."""
        refuse_unknown_arguments(request.query_params, ())
        return Response(self.get_object(request, identifier).template)

    def lookup(self, identifier: str) -> QuerySet[Any]:
        """Return the queryset of the stack that the path identifies by name and id, or by one of them."""
        name = self.kwargs.get("stack_name")
        stacks = self.get_queryset()
        return stacks_named(stacks, identifier) if name is None else stacks_at(stacks, name, identifier)

    def get_queryset(self) -> QuerySet[Any]:
        """Return the stacks that the user may see. Lists contain nested stacks only on request."""
        stacks: Any = super().get_queryset()
        return stacks if self.detail or read_flag(self.request, "show_nested") else stacks.roots()

    def find_marker(self, marker: str) -> QuerySet[Any]:
        return stacks_named(self.get_queryset(), marker)

    def filter_name(self, queryset: QuerySet[Stack], value: list[str]) -> QuerySet[Stack]:
        return queryset.filter(name__in=value)

    def filter_project_id(self, queryset: QuerySet[Stack], value: str) -> QuerySet[Stack]:
        return queryset.filter(project_id=value)

    def filter_show_nested(self, queryset: QuerySet[Stack], value: str) -> QuerySet[Stack]:
        """Return the queryset: `get_queryset` applies this filter."""
        return queryset

    def read(self, queryset: QuerySet[Any], detailed: bool) -> list[Row]:
        """Return the rows of stacks, with the status IN_PROGRESS as soon as an operation is accepted."""
        rows = super().read(queryset, detailed)
        starting = starting_operations([row["id"] for row in rows]) if rows else {}
        for row in rows:
            verb = starting.get(str(row["id"]))
            status, reason = shown_status(row["stack_status"], row["stack_status_reason"], verb)
            row["stack_status"], row["stack_status_reason"] = status, reason
        return rows

    def filter_status(self, queryset: QuerySet[Stack], value: list[str]) -> QuerySet[Stack]:
        return queryset.filter(shown_status_condition(check_statuses("status", value)))

    def create(self, request: Request) -> Response:
        """Create a stack. An action creates its resources."""
        attributes = read_body(request, NewStackSerializer, StackSerializer._declared_fields)
        refuse_later_properties(request, attributes["template"])
        plan_only, wanted = attributes.pop("plan_only"), attributes.pop("project_id", None)
        project = self.choose_project(wanted)
        options = self.project_request_options(request, plan_only, project, creates=True)
        return self.accepted(create_stack(**attributes, project_id=project, options=options))

    def update(self, request: Request, stack_name: str, identifier: str) -> Response:
        """Update a stack to a new template, or to its current one, by an action.

        Resources that failed or are marked as unhealthy are replaced.
        """
        stack: Stack = self.get_object(request, identifier)
        attributes = read_body(request, StackUpdateSerializer, StackSerializer._declared_fields)
        refuse_later_properties(request, attributes.get("template"))
        plan_only = attributes.pop("plan_only")
        options = self.project_request_options(request, plan_only, stack.project_id, creates=True, record=stack)
        return self.accepted(update_stack(stack, **attributes, options=options))

    def destroy(self, request: Request, stack_name: str, identifier: str) -> Response:
        """Delete a stack with its resources by an action."""
        stack: Stack = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        options = self.project_request_options(request, read_flag(request, "plan_only"), stack.project_id)
        return self.accepted(delete_stack(stack, options=options))
