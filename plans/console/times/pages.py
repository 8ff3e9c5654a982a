"""The page with the timeline of a plan."""

from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.functional import cached_property

from actions.console.intervals import Kind, total_duration
from plans.console.times.estimates import estimate_time_left
from plans.console.times.pauses import pauses_of
from plans.console.times.timeline import BY_ACTION, GROUPINGS, KINDS, MOST, actions_in_order, draw_timeline, read_rows
from plans.models import ActionPlan
from watcher_site.console.pages import FollowedPage, compose_version


class TimelinePage(FollowedPage):
    """The timeline of the actions of a plan, in pages, with a constant number of queries."""

    model = ActionPlan
    permission_required = ("plans.view_actionplan", "actions.view_action")
    template_name = "plans/timeline.html"
    part_template = "plans/_timeline.html"

    def get_queryset(self) -> QuerySet[ActionPlan]:
        return super().get_queryset().with_names()

    def get_version(self) -> str:
        plan: ActionPlan = self.object
        return compose_version(plan.state, plan.updated_at, plan.signals, sorted(self.states.items()))

    @cached_property
    def states(self) -> dict[str, Any]:
        return dict(self.object.actions.all().latest_changes())

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        plan, now = self.object, timezone.now()
        grouping = self.request.GET.get("by", "")
        grouping = grouping if grouping in GROUPINGS else BY_ACTION
        page = Paginator(actions_in_order(plan, grouping), MOST[grouping]).get_page(self.request.GET.get("page"))
        rows, pauses = read_rows(list(page.object_list), plan, now), pauses_of(plan, now)
        return super().get_context_data(
            plan=plan,
            page=page,
            rows=rows if grouping == BY_ACTION else [],
            timeline=draw_timeline(rows, pauses, grouping),
            grouping=grouping,
            groupings=GROUPINGS,
            kinds=KINDS,
            suspended_for=total_duration(pauses, Kind.SUSPENDED),
            time_left=estimate_time_left(plan, now),
            total=sum(number for number, _latest in self.states.values()),
            moving=plan.state not in plan.FINAL,
            **context,
        )
