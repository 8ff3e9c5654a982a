"""The pages of action plans."""

from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from actions.console.descriptions import order_state_counts
from actions.console.intervals import Kind, total_duration
from actions.event_details import sees_details
from actions.models import Action, ActionEvent
from plans.console.efficacy import efficacy_of
from plans.console.graph.picture import picture_of
from plans.console.messages import find_message, show_message
from plans.console.pruning.listing import list_actions
from plans.console.tables import ActionPlanFilters, ActionPlanTable
from plans.console.times.estimates import estimate_time_left
from plans.console.times.pauses import pauses_of
from plans.models import ActionPlan
from plans.models.refusals import (
    PLAN_PERMISSIONS,
    PLAN_POLICIES,
    PLAN_STATES,
    PlanOperation,
    is_plan_allowing,
    lacks_approval,
)
from plans.operations.approval import approve_plan, version_of_actions, withdraw_approval
from plans.operations.signals import signal_plan
from plans.planning.continuation import continue_plan
from plans.planning.scheduling import describe_plan_window, describe_waiting
from watcher_site.console.naming import find_names, name_objects
from watcher_site.console.pages import DeletionView, FollowedPage, ListPage, OperationView, compose_version
from watcher_site.console.paging import drop_unknown_page_size
from watcher_site.messages import Text
from watcher_site.models import Service

SHOWN_EVENTS = 12
MOST_EVENTS = 500
# The states in which a plan needs an applier.
MOVING = frozenset({ActionPlan.State.PENDING, ActionPlan.State.ONGOING, ActionPlan.State.CANCELLING})
# The seconds after which the page of a plan is updated. A RECOMMENDED plan may be changed by other users.
UPDATED_EVERY = dict.fromkeys(MOVING, 2) | {ActionPlan.State.RECOMMENDED: 5}


class ActionPlanList(ListPage):
    model = ActionPlan
    permission_required = "plans.view_actionplan"
    table_class = ActionPlanTable
    filterset_class = ActionPlanFilters
    template_name = "plans/actionplan_list.html"
    heading = _("Action plans")
    help_page = "concepts#action-plan"
    follows = True
    guidance = _("No action plans yet. Audits propose action plans.")

    def get_queryset(self) -> QuerySet[ActionPlan]:
        plans = ActionPlan.objects.present().with_progress().with_operation()
        return plans.select_related("audit", "strategy").order_by("-pk")


def find_missing_service() -> str | None:
    """Return the name of a service that is required to execute plans and has no living process, or None."""
    names = [Service.APPLIER, Service.WORKER] if settings.EXECUTOR == "celery" else [Service.APPLIER]
    alive = set(Service.objects.active().filter(name__in=names).values_list("name", flat=True).distinct())
    return next((name for name in names if name not in alive), None)


class ActionPlanPage(FollowedPage):
    """A plan, its graph, its actions and their events."""

    model = ActionPlan
    permission_required = ("plans.view_actionplan", "actions.view_action")

    template_name = "plans/actionplan_detail.html"
    part_template = "plans/_progress.html"

    def get(self, request: HttpRequest, *arguments: Any, **path: Any) -> HttpResponse:
        drop_unknown_page_size(request)
        return super().get(request, *arguments, **path)

    def get_version(self) -> str:
        plan: ActionPlan = self.object
        events = [(event.pk, event.finish_time) for event in self.latest_events["events"]]
        return compose_version(plan.state, plan.updated_at, plan.signals, self.missing_service, self.states, events)

    @cached_property
    def states(self) -> dict[str, tuple[int, datetime | None]]:
        return dict(sorted(self.object.actions.all().latest_changes().items()))

    @cached_property
    def missing_service(self) -> str | None:
        """The name of a service that the plan requires and that has no living process, or None."""
        return find_missing_service() if self.object.state in MOVING else None

    @cached_property
    def latest_events(self) -> dict[str, Any]:
        """The latest events, a larger number on request, and whether there are more."""
        most = MOST_EVENTS if "events" in self.request.GET else SHOWN_EVENTS
        events = ActionEvent.objects.filter(action__action_plan=self.object).select_related("action")
        found = list(events.order_by("-pk")[: most + 1])
        return {"events": found[:most], "more_events": len(found) > most, "all_events": most == MOST_EVENTS}

    def get_queryset(self) -> QuerySet[ActionPlan]:
        return super().get_queryset().with_operation().select_related("audit__goal", "strategy", "continues__audit")

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        plan: ActionPlan = self.object
        counts = order_state_counts({state: number for state, (number, _) in self.states.items()})
        total = sum(counts.values())
        allowed = allowed_operations(self.request, plan)
        details = sees_details(self.request.user)
        message = show_message(find_message(plan, details))
        continuation = plan.continuation() if is_plan_allowing(PlanOperation.CONTINUE, plan) else None
        return super().get_context_data(
            plan=plan,
            counts=counts,
            is_over=plan.state in plan.FINAL,
            total=total,
            finished=sum(count for state, count in counts.items() if state in Action.CARRIED_OUT),
            updated_every=UPDATED_EVERY.get(plan.state),
            missing_service=self.missing_service,
            allowed=allowed,
            actions_version=version_of_actions(self.states),
            lacks_approval=lacks_approval(plan, self.request.user.get_username()),
            offers_resume=plan.is_suspended or Action.State.SUSPENDED in counts,
            continuation=continuation,
            waiting=describe_waiting(plan),
            window=describe_plan_window(plan),
            **list_actions(self.request, plan, allowed),
            suspended_for=total_duration(pauses_of(plan, timezone.now()), Kind.SUSPENDED),
            time_left=estimate_time_left(plan, timezone.now()),
            efficacy=efficacy_of(plan),
            sees_details=details,
            message=name_objects(message, find_names([message], {})),
            **self.latest_events,
            **picture_of(plan, total, self.request.GET.get("layers", "")),
            **context,
        )


def allowed_operations(request: HttpRequest, plan: ActionPlan) -> set[PlanOperation]:
    """Return the operations that the state of the plan and the permissions of the user allow."""
    return {operation for operation in PlanOperation if is_plan_allowing(operation, plan, request.user)}


class ActionPlanOperationView(OperationView):
    model = ActionPlan

    def redirect_url(self, record: ActionPlan, done: bool) -> str:
        return reverse("plans:detail", args=[record.uuid])


class Continue(ActionPlanOperationView):
    permission_required = PLAN_PERMISSIONS[PlanOperation.CONTINUE]
    verb = _("continue the action plan")

    def perform(self, record: ActionPlan) -> str:
        self.successor = continue_plan(record)
        message = gettext(
            "Plan created from the unfinished actions. Review it, skip the actions that must not run, then start it."
        )
        is_scheduled = self.successor.window or self.successor.start_at
        return f"{message} {_('It has the schedule of the previous plan.')}" if is_scheduled else message

    def redirect_url(self, record: ActionPlan, done: bool) -> str:
        return super().redirect_url(self.successor if done else record, done)


class Cancel(ActionPlanOperationView):
    permission_required = PLAN_PERMISSIONS[PlanOperation.CANCEL]
    verb = _("cancel the action plan")
    question = _("Cancel this action plan?")
    possible_in = PLAN_STATES[PlanOperation.CANCEL]
    consequence = _(
        "Running actions are aborted, and no more actions begin. A cancelled plan cannot be started again; a new plan"
        " can continue its unfinished actions."
    )

    def perform(self, record: ActionPlan) -> str:
        record.abandon(by=self.request.user.get_username())
        return (
            gettext("The action plan is being cancelled.")
            if record.state == record.State.CANCELLING
            else gettext("Action plan cancelled.")
        )


class Approve(ActionPlanOperationView):
    permission_required = PLAN_PERMISSIONS[PlanOperation.APPROVE]
    verb = _("approve the action plan")

    def perform(self, record: ActionPlan) -> str:
        approve_plan(record, self.request.user.get_username(), self.request.POST.get("shown_actions", ""))
        return gettext("Action plan approved. Another user can start it.")


class WithdrawApproval(ActionPlanOperationView):
    permission_required = PLAN_PERMISSIONS[PlanOperation.WITHDRAW_APPROVAL]
    policy = PLAN_POLICIES[PlanOperation.WITHDRAW_APPROVAL]
    verb = _("withdraw the approval of the action plan")

    def perform(self, record: ActionPlan) -> str:
        withdraw_approval(record)
        return gettext("Approval withdrawn.")


class OnFailure(ActionPlanOperationView):
    history_event = "action_plan.update"
    permission_required = PLAN_PERMISSIONS[PlanOperation.CHOOSE_ON_FAILURE]
    verb = _("change the behaviour on failure")

    def perform(self, record: ActionPlan) -> str:
        record.choose_on_failure(self.request.POST.get("on_failure", ""))
        stops = record.on_failure == ActionPlan.OnFailure.STOP
        if stops:
            return gettext("If an action fails, dependent actions do not run.")
        return gettext("If an action fails, dependent actions run.")


class Delete(DeletionView, ActionPlanOperationView):
    permission_required = PLAN_PERMISSIONS[PlanOperation.DELETE]
    verb = _("delete the action plan")
    deleted = _("Deleted action plan %(name)s.")
    question = _("Delete this action plan?")
    possible_in = PLAN_STATES[PlanOperation.DELETE]
    consequence = _("The plan is removed from all lists, with its actions and their events.")

    def redirect_url(self, record: ActionPlan, done: bool) -> str:
        return reverse("plans:list") if done else super().redirect_url(record, done)


class PlanSignalView(ActionPlanOperationView):
    history_event = "action_plan.signal"
    permission_required = PLAN_PERMISSIONS[PlanOperation.SUSPEND]
    policy = PLAN_POLICIES[PlanOperation.SUSPEND]
    signal: ClassVar[Action.Signal]
    message: ClassVar[Text]

    def perform(self, record: ActionPlan) -> str:
        signal_plan(record, self.signal, self.request.user.get_username())
        return str(self.message)


class Suspend(PlanSignalView):
    signal = Action.Signal.SUSPEND
    verb = _("suspend the action plan")
    message = _("Action plan suspended. No more actions begin, and running actions pause at their next checkpoint.")


class Resume(PlanSignalView):
    signal = Action.Signal.RESUME
    verb = _("resume the action plan")
    message = _("Action plan resumed.")
