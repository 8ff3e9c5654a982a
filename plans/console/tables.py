"""The table and the filters of the console's list of action plans."""

from typing import Any

import django_filters
import django_tables2 as tables
from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.formats import number_format
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from actions.console.lookups import requested_by
from actions.event_details import sees_details
from plans.console.messages import find_message, show_message
from plans.models import ActionPlan
from watcher_site.console.columns import (
    TABLE_ATTRIBUTES,
    CompareColumn,
    MessageColumn,
    NumberColumn,
    PhraseColumn,
    PlanColumn,
    StateColumn,
    TimeColumn,
    fill_placeholders,
    make_choices,
)
from watcher_site.console.lists.filters import LONGEST, NAME_OR_UUID, NameFilter, name_condition
from watcher_site.console.naming import Names, find_names, name_objects
from watcher_site.messages import cut
from watcher_site.templatetags.console import elapsed, until, when
from watcher_site.templatetags.names import plan_link, visible

# The shown length of a user's name, which leaves space for the other columns.
NAME_LENGTH = 24


class ActionPlanFilters(django_filters.FilterSet):
    state = django_filters.ChoiceFilter(
        label=_("State"), choices=make_choices(ActionPlan.State.values), empty_label=_("any")
    )
    approval = django_filters.ChoiceFilter(
        label=_("Approval"), choices=[("missing", _("missing"))], empty_label=_("any"), method="with_approval"
    )
    plan = django_filters.CharFilter(label=NAME_OR_UUID, method="with_name", max_length=LONGEST)
    strategy = django_filters.CharFilter(
        label=_("Strategy"), field_name="strategy__display_name", lookup_expr="icontains"
    )
    audit = NameFilter("audit__name", label=_("Audit"))

    class Meta:
        model = ActionPlan
        fields: list[str] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if not settings.PLAN_APPROVAL:
            del self.filters["approval"]

    def with_approval(self, plans: QuerySet[ActionPlan], _name: str, _value: str) -> QuerySet[ActionPlan]:
        """Select the plans that wait for an approval."""
        return plans.filter(state=ActionPlan.State.RECOMMENDED, approved_by=None)

    def with_name(self, plans: QuerySet[ActionPlan], _: str, text: str) -> QuerySet[ActionPlan]:
        return plans.filter(plan_condition(text))


def plan_condition(text: str) -> Q:
    """Return the condition for plans by UUID or name: the name of the audit, or the requested operation."""
    return name_condition(text, "audit__name") | requested_by(text)


class PlanStateColumn(StateColumn):
    """The state of a plan, and the time until which it waits."""

    def render(self, record: ActionPlan, bound_column: Any) -> SafeString:
        badge = super().render(record, bound_column)
        opening = record.next_opening
        if opening is None:
            return badge
        text = _("begins %(moment)s") if record.is_prunable else _("continues %(moment)s")
        return format_html(
            '{}<br><span class="secondary">{}</span>', badge, fill_placeholders(text, moment=until(opening))
        )


class StartColumn(TimeColumn):
    """The start time of a plan, and the user who started it."""

    attrs = {"th": {"class": "text-nowrap"}}

    def render(self, value: Any, record: Any = None) -> SafeString:
        if not record.started_by:
            return format_html("{}", when(value))
        by = _("by %(user)s") % {"user": cut(visible(record.started_by), NAME_LENGTH)}
        return format_html(
            '<span>{}<br><span class="secondary" title="{}">{}</span></span>', when(value), record.started_by, by
        )


class EndColumn(TimeColumn):
    """The end of a plan, and its duration until then or until now."""

    attrs = {"th": {"class": "text-nowrap"}, "td": {"class": "text-nowrap"}}

    def render(self, value: Any, record: Any = None) -> SafeString:
        if record.start_time is None or (value is None and record.state in record.FINAL):
            return format_html("{}", when(value))
        text = _("took %(duration)s") if value else _("running for %(duration)s")
        took = text % {"duration": elapsed(record)}
        return format_html('<span>{}<br><span class="secondary">{}</span></span>', when(value), took)


class ActionPlanTable(tables.Table):
    compare = CompareColumn()
    state = PlanStateColumn()
    plan = PlanColumn(empty_values=(), orderable=False)
    strategy = PhraseColumn(accessor="strategy__display_name", verbose_name=_("strategy"), default="—")
    finished = NumberColumn(accessor="finished_actions", verbose_name=_("finished"), orderable=False)
    start_time = StartColumn(accessor="start_time", verbose_name=_("started"))
    end_time = EndColumn(accessor="end_time", verbose_name=_("ended"), empty_values=())
    status_message = MessageColumn(verbose_name=_("message"))
    created_at = TimeColumn(accessor="created_at", verbose_name=_("created"))

    class Meta:
        model = ActionPlan
        fields = ("state", "plan", "strategy", "finished", "start_time", "end_time", "status_message", "created_at")
        sequence = ("...", "compare")
        attrs = TABLE_ATTRIBUTES

    def render_plan(self, record: ActionPlan) -> SafeString:
        return plan_link(record)

    def render_status_message(self, value: str, record: ActionPlan) -> SafeString:
        stored = find_message(record, sees_details(self.request.user))
        text = name_objects(show_message(stored), self.names)
        return format_html('<span class="first-lines" title="{}">{}</span>', stored, text)

    @cached_property
    def names(self) -> Names:
        """The names of the objects that the messages of this page mention, by UUID."""
        return find_names([row.record.status_message or "" for row in self.paginated_rows], {})

    def render_finished(self, value: int, record: ActionPlan) -> SafeString:
        counts = {"finished": number_format(value), "total": number_format(getattr(record, "total_actions", 0))}
        finished = _("%(finished)s of %(total)s") % counts
        skipped = getattr(record, "skipped_actions", 0)
        more = _("%(number)s skipped") % {"number": number_format(skipped)}
        line = format_html('<br><span class="secondary">{}</span>', more) if skipped else ""
        return format_html("<span>{}{}</span>", finished, line)
