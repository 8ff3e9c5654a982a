"""The base of the views of operations on clusters, nodes and stacks: bodies and responses."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from cluster.models import Trust
from cluster.operations.trusts import obtain_trust
from plans.operations.base import Operation, RequestOptions
from watcher_site.api.bodies import FlagField, Step, apply_patch
from watcher_site.api.versions import Version
from watcher_site.refusals import Invalid
from watcher_site.request_context import caller_of
from watcher_site.web.keystone_session import find_token

VIEW_PLAN = "plans.view_actionplan"
PLAN_ONLY = "whether the plan is only proposed, to be reviewed and started later"
PLAN_ONLY_PARAMETER = OpenApiParameter("plan_only", bool, description=PLAN_ONLY)


class OperationSerializer(serializers.Serializer[Any]):
    """The result of a request for an operation."""

    action = serializers.UUIDField(help_text="the action that performs the operation")
    action_plan = serializers.UUIDField(help_text="the plan that contains the action")


class OptionsSerializer(serializers.Serializer[Any]):
    """The optional body of an operation."""

    plan_only = FlagField(required=False, default=False, help_text=PLAN_ONLY)

    argument = "operation"
    since: dict[str, Version] = {}


def trust_of(request: Any, project: str, record: Any = None) -> Trust | None:
    """Return the trust by which the site creates servers in a project as the sender of a request, if needed.

    Args:
        record: as for `obtain_trust`.
    """
    return obtain_trust(request.user, find_token(request), project, record)


class Operating:
    """A mixin for views whose operations are plans. ``operates_on`` is the field of the target in responses."""

    operates_on: str

    def request_options(self: Any, request: Request, plan_only: bool) -> RequestOptions:
        """Return the options of a requested operation. Without ``plan_only``, the user must be able to start plans."""
        if not plan_only:
            self.require(request, "plans.start_actionplan")
        return RequestOptions(caller_of(request), plan_only, may_cancel=request.user.has_perm("actions.signal_action"))

    def project_request_options(
        self: Any, request: Request, plan_only: bool, project: str, *, creates: bool = False, record: Any = None
    ) -> RequestOptions:
        """Return the options of a requested operation on an object of a project.

        An operation on an object of the user's own project that starts immediately requires no permission on plans.

        Args:
            creates: whether the operation may create servers, for which a user of Keystone delegates a trust.
            record: the object of these servers, unless it is new. If it has a valid trust, no other one is obtained.

        Raises:
            PermissionDenied: with ``plan_only``, the user may not see plans.
            Conflict, KeystoneUnavailable: as `cluster.operations.trusts.obtain_trust`.
        """
        if plan_only and not request.user.has_perm(VIEW_PLAN):
            raise PermissionDenied("plan_only: you may not see plans; without plan_only it is done at once.")
        is_own = project in self.projects
        options = RequestOptions(caller_of(request), plan_only) if is_own else self.request_options(request, plan_only)
        return replace(options, trust=trust_of(request, project, record)) if creates else options

    def accepted(self: Any, operation: Operation) -> Response:
        answer = {
            "action": operation.action,
            "action_plan": operation.action_plan,
            self.operates_on: operation.target,
        }
        return Response(answer, 202, headers={"Location": f"{self.host()}/v1/actions/{operation.action}"})


def columns_of(record: Any, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def changes_of(before: dict[str, Any], patch: list[Step]) -> dict[str, Any]:
    """Return the new values of the attributes that a patch changes.

    Raises:
        Invalid: the patch does not fit the attributes, or changes none.
    """
    after = apply_patch(before, patch)
    changes = {name: after.get(name) for name in before if after.get(name) != before[name]}
    if not changes:
        raise Invalid("Invalid input for field/attribute patch. It changes nothing.")
    return changes
