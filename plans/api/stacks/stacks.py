"""``/v1/stacks``: read them, and have them created, updated and deleted."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Stack
from cluster.models.stacks import LONGEST_TIMEOUT, NAME_LENGTH
from cluster.stacks.templates.schemas import STACK_NAME
from cluster.stacks.templates.schemas import TEMPLATE as TEMPLATE_VALIDATOR
from plans.api.marks import Marking, ResourceMarking
from plans.api.operations import PLAN_ONLY_PARAMETER, Operating, OperationSerializer, OptionsSerializer
from plans.api.stacks.reading import StackReading, StackResourceReading, StackSerializer, known_statuses
from plans.operations.base import RequestOptions
from plans.operations.stack_progress import having_status, shown_status, starting_operations
from plans.operations.stacks import create_stack, delete_stack, update_stack
from watcher_site.api.bodies import DescribedField, WholeField, read_body
from watcher_site.api.paging import read_flag, refuse_unknown_arguments
from watcher_site.api.serializers import Row
from watcher_site.request_context import caller_of

MARK_STACK = "cluster.mark_stack"
VIEW_PLAN = "plans.view_actionplan"
TEMPLATE_SCHEMA = {"oneOf": [{"type": "string", "minLength": 1}, TEMPLATE_VALIDATOR.schema]}
TEMPLATE = "an object, or a text in JSON or YAML"


def timeout_field(default: str) -> Any:
    help_text = f"for how many minutes an operation on it may take, beside its pauses; left out: {default}"
    return WholeField(required=False, min_value=1, max_value=LONGEST_TIMEOUT, help_text=help_text)


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
        max_length=NAME_LENGTH, required=False, help_text="the only one that one has, if left out"
    )
    timeout_mins = timeout_field("as the site has it")

    argument = "stack"


class StackUpdateSerializer(OptionsSerializer):
    """The body of PUT."""

    template = DescribedField(TEMPLATE_SCHEMA, required=False, help_text=f"{TEMPLATE}; left out: the one that it has")
    timeout_mins = timeout_field("as it has been")

    argument = "stack"


class StackView(Marking, Operating, StackReading):
    operates_on = "stack"
    bodies = {"create": NewStackSerializer, "update": StackUpdateSerializer, **Marking.mark_bodies}
    arguments = {"destroy": [PLAN_ONLY_PARAMETER]}
    answers = {
        **StackReading.answers,
        **dict.fromkeys(("create", "update", "destroy"), (202, StackOperationSerializer)),
        **Marking.mark_answers,
    }
    actions_since = Marking.mark_versions
    permissions_required = {**StackReading.permissions_required, "mark": MARK_STACK}

    def read(self, queryset: QuerySet[Any], detailed: bool) -> list[Row]:
        """Return the rows of stacks, with the status IN_PROGRESS from the moment an operation is accepted."""
        rows = super().read(queryset, detailed)
        starting = starting_operations([row["id"] for row in rows]) if rows else {}
        for row in rows:
            verb = starting.get(str(row["id"]))
            status, reason = shown_status(row["stack_status"], row["stack_status_reason"], verb)
            row["stack_status"], row["stack_status_reason"] = status, reason
        return rows

    def filter_status(self, queryset: QuerySet[Stack], value: list[str]) -> QuerySet[Stack]:
        return queryset.filter(having_status(known_statuses("status", value)))

    def create(self, request: Request) -> Response:
        """Make a stack, and have its resources created by an action."""
        attributes = read_body(request, NewStackSerializer, StackSerializer._declared_fields)
        plan_only, wanted = attributes.pop("plan_only"), attributes.pop("project_id", None)
        project = self.choose_project(wanted)
        options = self.project_request_options(request, plan_only, project)
        return self.accepted(create_stack(**attributes, project_id=project, options=options))

    def update(self, request: Request, stack_name: str, identifier: str) -> Response:
        """Have a stack changed by an action: as another template says, or as its own does.

        Whatever was marked unhealthy, or failed, is replaced.
        """
        stack: Stack = self.get_object(request, identifier)
        attributes = read_body(request, StackUpdateSerializer, StackSerializer._declared_fields)
        options = self.project_request_options(request, attributes.pop("plan_only"), stack.project_id)
        return self.accepted(update_stack(stack, **attributes, options=options))

    def destroy(self, request: Request, stack_name: str, identifier: str) -> Response:
        """Have a stack deleted by an action, with all that is in it."""
        stack: Stack = self.get_object(request, identifier)
        refuse_unknown_arguments(request.query_params, {"plan_only"})
        options = self.project_request_options(request, read_flag(request, "plan_only"), stack.project_id)
        return self.accepted(delete_stack(stack, options=options))

    def project_request_options(self, request: Request, plan_only: bool, project: str) -> RequestOptions:
        """Return how an operation was asked for: what is done at once to a project's own needs no right on plans.

        Raises:
            PermissionDenied: the plan would wait for somebody who may not even look at it.
        """
        if plan_only and not request.user.has_perm(VIEW_PLAN):
            raise PermissionDenied("plan_only: you may not see plans; without plan_only it is done at once.")
        is_own = project in self.projects
        return RequestOptions(caller_of(request), plan_only) if is_own else self.request_options(request, plan_only)


class StackResourceView(ResourceMarking, StackResourceReading):
    bodies = Marking.mark_bodies
    permissions_required = {**StackResourceReading.permissions_required, "mark": MARK_STACK}
