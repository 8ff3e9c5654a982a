"""The table of a plan's actions on the plan's page."""

from typing import Any

from django.http import HttpRequest
from django_tables2 import RequestConfig

from actions.console.tables import PlanActionTable
from plans.console.pruning.filters import PlanActionFilters
from plans.models import ActionPlan
from plans.models.refusals import PlanOperation
from watcher_site.console.paging import PAGE_SIZES

ACTIONS_PER_PAGE = 50


def list_actions(request: HttpRequest, plan: ActionPlan, allowed: set[PlanOperation]) -> dict[str, Any]:
    """Return the filtered table of a plan's actions with its filters, for the template."""
    filters = PlanActionFilters(request.GET, plan, request.user)
    actions = filters.qs.select_related("derived_from").with_first_parents().order_by("pk")
    table = PlanActionTable(
        actions, may_skip=PlanOperation.SKIP_ACTIONS in allowed, may_signal=PlanOperation.SIGNAL_ACTIONS in allowed
    )
    RequestConfig(request, paginate={"per_page": ACTIONS_PER_PAGE}).configure(table)
    offered = filters.qs.count_offered() if PlanOperation.SKIP_ACTIONS in allowed else {}
    return {
        **offered,
        # A page without further rows is selected by the box in the heading.
        "selects_matching": filters.is_filtered or table.paginator.num_pages > 1,
        "table": table,
        "filters": filters,
        "matching": table.paginator.count,
        "only": filters.form.cleaned_data.get("state") if filters.is_valid() else "",
        "page_sizes": PAGE_SIZES,
        "page_size": table.paginator.per_page,
    }
