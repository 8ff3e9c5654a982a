"""``/v1/action_plans``: read, start, cancel and delete action plans (docs/compatibility.md, "Action plans")."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from actions.api.serializers import ActionSerializer, SignalSerializer
from actions.event_details import conceal_plan_faults, sees_details
from actions.models import Action
from actions.models.plan_states import PlanState
from actions.operations.skipping import restore_actions, skip_actions
from plans.api.preflight import PREFLIGHT_PARAMETERS, Preflighting, PreflightSerializer
from plans.api.serializers import (
    ActionPlanSerializer,
    ChosenActionsSerializer,
    ChosenAnswerSerializer,
    SkippedActionsSerializer,
)
from plans.models import ActionPlan
from plans.models.refusals import PLAN_PERMISSIONS, PlanOperation, is_plan_allowing
from plans.operations.approval import approve_plan, withdraw_approval
from plans.operations.signals import signal_plan
from plans.planning.continuation import continue_plan
from plans.planning.scheduling import schedule
from watcher_site.api.bodies import (
    Step,
    TimeTextField,
    WindowField,
    cannot_apply,
    divide,
    read_body,
    read_patch,
    refuse_later,
)
from watcher_site.api.paging import read_uuid
from watcher_site.api.serializers import Row
from watcher_site.api.versions import APPROVALS, EXTENDED, Version, used_by
from watcher_site.api.views import ComposedLookup, ResourceView
from watcher_site.refusals import Invalid, WrongState
from watcher_site.request_context import caller_of
from watcher_site.state_machine import TransitionNotAllowed

State = PlanState


class ScheduleSerializer(serializers.Serializer[Any]):
    start_at = TimeTextField(
        required=False,
        allow_null=True,
        help_text="ISO 8601; in the time zone of zone if it has no offset",
    )
    zone = serializers.CharField(
        required=False,
        allow_null=True,
        help_text="time zone, such as Europe/Berlin; null: UTC, which is also the initial value",
    )
    window = WindowField(required=False, allow_null=True)

    argument = "schedule"
    since: dict[str, Version] = dict.fromkeys(("start_at", "zone", "window"), EXTENDED)


class Scheduling:
    """The methods of the view of action plans for starts and schedules."""

    def start(self: Any, request: Request, identifier: str) -> Response:
        """Start a RECOMMENDED plan.

        From 1.12, an optional body sets a start time, a maintenance window, or both.
        """
        plan = self.get_object(request, identifier)
        changes = read_schedule(request)
        try:
            if changes:
                schedule(plan, changes, start=True, caller=caller_of(request))
            else:
                plan.launch(caller_of(request))
        except TransitionNotAllowed as problem:
            raise WrongState(f"Couldn't start when state is '{plan.state}'.") from problem
        return Response(self.show(plan))

    def schedule(self: Any, request: Request, identifier: str) -> Response:
        """Set the start time or the maintenance window of a plan that has not ended. From 1.12.

        Omitted attributes do not change, and null resets an attribute. The time can be changed until the plan begins,
        the window until the plan ends. Running actions are not interrupted.
        """
        self.require_version(request)
        plan = self.get_object(request, identifier)
        schedule(plan, read_body(request, ScheduleSerializer))
        return Response(self.show(plan))


def read_schedule(request: Request) -> dict[str, Any]:
    """Return the schedule in the body of a start, empty without a body.

    Before 1.12, a start had no body: other attributes are ignored.

    Raises:
        Invalid, NotAcceptableHere: as `read_body`.
    """
    if used_by(request) >= EXTENDED:
        return read_body(request, ScheduleSerializer)
    refuse_later(request, ScheduleSerializer)
    return {}


class ActionPlanView(Scheduling, Preflighting, ComposedLookup, ResourceView):
    serializer_class = ActionPlanSerializer
    model = ActionPlan
    title = "ActionPlan"
    policy = "action_plan"
    filters = ["audit_uuid", "strategy"]
    sort_keys = {
        "uuid": "uuid",
        "state": "state",
        "hostname": "hostname",
        "created_at": "created_at",
        "updated_at": "updated_at",
        "audit_uuid": "audit__uuid",
        "strategy_uuid": "strategy__uuid",
        "strategy_name": "strategy__name",
    }
    permissions_required = {
        "start": PLAN_PERMISSIONS[PlanOperation.START],
        "schedule": PLAN_PERMISSIONS[PlanOperation.SCHEDULE],
        "partial_update": "",
        "skip": PLAN_PERMISSIONS[PlanOperation.SKIP_ACTIONS],
        "restore": PLAN_PERMISSIONS[PlanOperation.SKIP_ACTIONS],
        "continue_plan": PLAN_PERMISSIONS[PlanOperation.CONTINUE],
        "signal": PLAN_PERMISSIONS[PlanOperation.SUSPEND],
        "approve": PLAN_PERMISSIONS[PlanOperation.APPROVE],
        "withdraw_approval": PLAN_PERMISSIONS[PlanOperation.WITHDRAW_APPROVAL],
    }
    bodies = {
        "start": ScheduleSerializer,
        "schedule": ScheduleSerializer,
        "skip": SkippedActionsSerializer,
        "restore": ChosenActionsSerializer,
        "signal": SignalSerializer,
    }
    bodies_since = {"start": EXTENDED}
    answers = {
        "skip": (200, ChosenAnswerSerializer),
        "restore": (200, ChosenAnswerSerializer),
        "continue_plan": (201, ActionPlanSerializer),
        "signal": (202, ActionPlanSerializer),
        "preflight": (200, PreflightSerializer),
    }
    actions_since = {
        **dict.fromkeys(("skip", "restore", "continue_plan", "schedule", "signal", "preflight"), EXTENDED),
        **dict.fromkeys(("approve", "withdraw_approval"), APPROVALS),
    }
    arguments = {"preflight": PREFLIGHT_PARAMETERS}
    judging = frozenset({"preflight"})
    policy_actions = ResourceView.policy_actions | {"continue_plan": "continue"}
    history_events = {"skip": "action.skip", "restore": "action.restore"}
    history_events_within = frozenset(history_events)
    history_events_by_state = {
        "PENDING": "action_plan.start",
        "CANCELLED": "action_plan.cancel",
        "CANCELLING": "action_plan.cancel",
    }
    example_step = {"op": "replace", "path": "/state", "value": "CANCELLED"}

    def conceal(self, rows: list[Row]) -> None:
        if not sees_details(self.request.user):
            conceal_plan_faults(rows)

    def filter_audit_uuid(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(audit__uuid=read_uuid(value, "audit_uuid"))

    def filter_strategy(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        strategies = self.model._meta.get_field("strategy").related_model.objects.named(value)
        return queryset.filter(strategy__in=strategies)

    def skip(self, request: Request, identifier: str) -> Response:
        """Skip a set of PENDING actions of the plan for one reason, all or none. From 1.12."""
        self.require_version(request)
        plan = self.get_object(request, identifier)
        body = read_body(request, SkippedActionsSerializer)
        skip_actions(plan, body["actions"], request.user.get_username(), body.get("reason"))
        return self.show_actions(body["actions"])

    def restore(self, request: Request, identifier: str) -> Response:
        """Restore a set of actions of the plan that users skipped, all or none. From 1.12."""
        self.require_version(request)
        plan = self.get_object(request, identifier)
        body = read_body(request, ChosenActionsSerializer)
        restore_actions(plan, body["actions"])
        return self.show_actions(body["actions"])

    def continue_plan(self, request: Request, identifier: str) -> Response:
        """Propose a plan with the failed and cancelled actions of a FAILED or CANCELLED plan, once. From 1.12.

        The actions keep their dependencies. The new plan is RECOMMENDED, so that it can be reviewed and pruned.
        """
        self.require_version(request)
        return self.created(continue_plan(self.get_object(request, identifier)))

    def signal(self, request: Request, identifier: str) -> Response:
        """Send a signal to a plan: CANCEL, SUSPEND or RESUME. From 1.12."""
        self.require_version(request)
        plan = self.get_object(request, identifier)
        signal = Action.Signal(read_body(request, SignalSerializer)["signal"])
        if signal == Action.Signal.CANCEL:
            self.require(request, PLAN_PERMISSIONS[PlanOperation.CANCEL])
        signal_plan(plan, signal, request.user.get_username())
        return Response(self.show(plan), 202)

    def approve(self, request: Request, identifier: str) -> Response:
        """Approve the start of a RECOMMENDED plan by other users. From 1.17.

        With `WATCHER_PLAN_APPROVAL`, a plan is started only by another user than the one who approved it. Restored
        actions and changed dependencies withdraw the approval.
        """
        self.require_version(request)
        plan = self.get_object(request, identifier)
        approve_plan(plan, request.user.get_username())
        return Response(self.show(plan))

    def withdraw_approval(self, request: Request, identifier: str) -> Response:
        """Withdraw the approval of a RECOMMENDED plan. From 1.17."""
        self.require_version(request)
        plan = self.get_object(request, identifier)
        withdraw_approval(plan)
        return Response(self.show(plan))

    def show_actions(self, uuids: list[UUID]) -> Response:
        actions = Action.objects.filter(uuid__in=uuids).order_by("pk")
        rows = ActionSerializer.read(actions, used_by(self.request), True, self.host())
        return Response({ActionSerializer.Meta.collection: rows})

    def partial_update(self, request: Request, identifier: str) -> Response:
        """Start or cancel a plan by its state; from 1.12, also set on_failure."""
        patch = read_patch(request.data, internal=("/status_message",), mandatory=("/state", "/on_failure"))
        plan = self.get_object(request, identifier)
        paths = {"/on_failure"} if used_by(request) >= EXTENDED else set()
        choices, others = divide(patch, lambda step: step["path"] in paths)
        with transaction.atomic():
            if choices:
                self.require(request, PLAN_PERMISSIONS[PlanOperation.CHOOSE_ON_FAILURE])
                # The last value counts, as for states, so that the row of the plan is written once.
                plan.choose_on_failure(choices[-1]["value"])
            if others or not choices:
                self.change_state(request, plan, others)
        return Response(self.show(plan))

    def change_state(self, request: Request, plan: ActionPlan, patch: list[Step]) -> None:
        wanted = [step["value"] for step in patch if step["path"] == "/state"]
        operation = PlanOperation.START if State.PENDING in wanted else PlanOperation.CANCEL
        self.require(request, PLAN_PERMISSIONS[operation])
        if read_state(patch, plan) == State.PENDING:
            plan.launch(caller_of(request))
        else:
            plan.abandon(request.user.get_username())

    def destroy(self, request: Request, identifier: str) -> Response:
        self.get_object(request, identifier).remove()
        return Response(status=204)


def read_state(patch: list[Step], plan: ActionPlan) -> PlanState:
    """Return the state that a patch requests.

    Raises:
        Invalid: the patch changes another attribute, or the state cannot be requested for this plan.
    """
    requested = plan.state
    for step in patch:
        if step["path"] != "/state":
            raise cannot_apply(patch, f"State transition not allowed: ({plan.state} -> {plan.state})")
        requested = step["value"]
    if requested not in State.values:
        raise Invalid(f"Invalid state: {requested}")
    cancelled = State.CANCELLING if plan.state == State.ONGOING else State.CANCELLED
    operation = {State.PENDING: PlanOperation.START, cancelled: PlanOperation.CANCEL}.get(State(requested))
    if operation is None or not is_plan_allowing(operation, plan):
        raise cannot_apply(patch, f"State transition not allowed: ({plan.state} -> {requested})", WrongState)
    return State(requested)
