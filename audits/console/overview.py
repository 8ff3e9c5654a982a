"""The first page of the console: an overview of plans, audits and services."""

from typing import Any

from django.db.models import QuerySet
from django.views.generic import TemplateView

from actions.console.descriptions import order_state_counts
from actions.models import Action
from audits.models import Audit
from cluster.models import ComputeNode, Server
from plans.models import ActionPlan
from watcher_site.console.pages import ConsistentReadsMixin, Page
from watcher_site.database.counting import MOST_COUNTED, count_up_to
from watcher_site.models import Service
from watcher_site.templatetags.navigation import PARTS_OF_TRENDS

SHOWN = 6


class Overview(Page, ConsistentReadsMixin, TemplateView):
    permission_required = ()

    def get_template_names(self) -> list[str]:
        return ["_overview.html" if getattr(self.request, "htmx", False) else "overview.html"]

    def has_permission(self) -> bool:
        """Allow all logged-in users: the page omits data that they may not view."""
        return self.request.user.is_authenticated

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        may_see = self.may
        return super().get_context_data(
            **(count_plans() if may_see("plans.view_actionplan") else {}),
            **(count_audits() if may_see("audits.view_audit") else {}),
            **(
                {"action_counts": order_state_counts(count_by_state(Action))} if may_see("actions.view_action") else {}
            ),
            **(count_cluster_objects() if may_see("cluster.view_computenode") else {}),
            shows_trends=any(map(may_see, PARTS_OF_TRENDS)),
            services=Service.objects.present().order_by("name", "host"),
            **context,
        )


def count_plans() -> dict[str, Any]:
    listed = ActionPlan.objects.present().with_progress().with_operation()
    plans = listed.select_related("audit", "strategy").order_by("-pk")
    return {
        "plan_counts": count_by_state(ActionPlan),
        "to_decide": plans.filter(state=ActionPlan.State.RECOMMENDED)[:SHOWN],
        "running": plans.filter(state__in=["PENDING", "ONGOING", "CANCELLING"])[:SHOWN],
    }


def count_audits() -> dict[str, Any]:
    audits = Audit.objects.present()
    return {
        "audit_counts": count_by_state(Audit),
        "audits": audits.select_related("goal", "strategy").order_by("-pk")[:SHOWN],
    }


def count_cluster_objects() -> dict[str, Any]:
    return {
        "nodes": ComputeNode.objects.present().count(),
        "disabled_nodes": ComputeNode.objects.present().filter(status=ComputeNode.Status.DISABLED).count(),
        "servers": Server.objects.present().count(),
    }


def count_by_state(model: Any) -> dict[str, int]:
    """Return the number of records by state, without zeros, up to one more than `MOST_COUNTED`, in one query."""
    states = sorted(model.State.values)
    present: QuerySet[Any] = model.objects.present()
    numbers = count_up_to(MOST_COUNTED, [present.filter(state=state) for state in states])
    return {state: number for state, number in zip(states, numbers, strict=True) if number}
