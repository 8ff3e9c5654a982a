"""The dialog that starts a plan, with a summary of the actions that will run."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet
from django.db.models.fields.json import KT
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from actions.models import Action
from plans.console.views import ActionPlanOperationView, find_missing_service
from plans.models import ActionPlan
from plans.models.refusals import PLAN_PERMISSIONS, PLAN_STATES, PlanOperation, is_plan_allowing
from plans.planning.scheduling import describe_plan_window, describe_start
from watcher_site import plugins
from watcher_site.request_context import caller_of

NAMED = 4
# The preflight of a plan of this size ends before users have read the summary.
MOST_SIMULATED = 500


@dataclass(frozen=True)
class Named:
    """The number of some objects, and the names of the first ones."""

    total: int
    names: Sequence[str]

    @property
    def unnamed(self) -> int:
        return self.total - len(self.names)


@dataclass(frozen=True)
class Summary:
    """The actions of a plan that will run, by type, with the servers and the compute nodes that they affect."""

    types: dict[str, int]
    skipped: int
    servers: Named
    compute_nodes: Named

    @property
    def total(self) -> int:
        return sum(self.types.values())


def summarize_start(plan: ActionPlan) -> Summary:
    """Return the summary of a plan that has not begun, in five queries."""
    present = plan.actions.present().order_by()
    numbers = present.values_list("state", "action_type").annotate(number=Count("pk")).order_by("action_type")
    counted = list(numbers)
    actions = present.filter(state=Action.State.PENDING)
    return Summary(
        {kind: number for state, kind, number in counted if state == Action.State.PENDING},
        sum(number for state, _, number in counted if state == Action.State.SKIPPED),
        servers_of(actions),
        compute_nodes_of(actions),
    )


def servers_of(actions: QuerySet[Action]) -> Named:
    """Return the servers that actions operate on, in the order of the plan."""
    probe = {"resource_id": "server"}
    types = [name for name, one in plugins.load("ACTION_TYPES").items() if one.affected(probe).operations]
    on_servers = actions.filter(action_type__in=types)
    first = on_servers.order_by("pk").values_list(KT("input_parameters__resource_name"), "target")
    names = list(dict.fromkeys(name or target or "" for name, target in first[: NAMED * 4]))
    total = on_servers.aggregate(number=Count("target", distinct=True))["number"]
    return Named(total, names[: min(NAMED, total)])


def compute_nodes_of(actions: QuerySet[Action]) -> Named:
    """Return the compute nodes that are sources, destinations or targets of actions, by name."""
    types = plugins.load("ACTION_TYPES")
    routes = actions.values_list(
        "action_type", KT("input_parameters__source_node"), KT("input_parameters__destination_node")
    )
    names = set()
    for kind, source, destination in routes.distinct():
        if kind in types:
            names |= set(types[kind].affected({"source_node": source, "destination_node": destination}).compute_nodes)
    changing = [name for name, one in types.items() if one.availability]
    names |= set(
        actions.filter(action_type__in=changing).values_list(KT("input_parameters__resource_name"), flat=True)
    )
    known = sorted(map(str, names - {None}))
    return Named(len(known), known[:NAMED])


class Start(ActionPlanOperationView):
    permission_required = PLAN_PERMISSIONS[PlanOperation.START]
    verb = _("start the action plan")
    question = _("Start this action plan?")
    look = "primary"
    possible_in = PLAN_STATES[PlanOperation.START]

    def render_confirmation(self, record: ActionPlan) -> HttpResponse:
        may_simulate = is_plan_allowing(PlanOperation.PREFLIGHT, record, self.request.user)
        summary = summarize_start(record)
        context = {
            "plan": record,
            "view": self,
            "back": self.redirect_url(record, False),
            "summary": summary,
            "window": describe_plan_window(record),
            "missing_service": find_missing_service(),
            "may_simulate": may_simulate,
            "simulates": may_simulate and 0 < summary.total <= MOST_SIMULATED,
        }
        return render(self.request, "plans/start.html", context)

    def perform(self, record: ActionPlan) -> str:
        record.launch(caller_of(self.request))
        return describe_start(record)
