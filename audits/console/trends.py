"""The page of trends: outcomes, durations and efficacy by day, and the used capacity."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

from django.core.cache import cache
from django.db.models import (
    Avg,
    Count,
    DurationField,
    ExpressionWrapper,
    F,
    FloatField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast, Coalesce, TruncDate
from django.utils import timezone
from django.utils.formats import date_format, localize
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.generic import TemplateView

from actions.models import Action
from cluster.console.heat_map import capacity_in_use
from cluster.models import Server
from plans.models import ActionPlan
from watcher_site.console.pages import Page
from watcher_site.messages import Text
from watcher_site.templatetags.console import humanize_name

# The seconds for which charts are cached. With 100,000 actions, the queries for 90 days take a few 100 ms.
KEPT = 300
RANGES = (7, 30, 90)
DEFAULT_DAYS = 30
LENGTH = ExpressionWrapper(F("end_time") - F("start_time"), DurationField())
# The units of durations: the seconds from which each is used, its length in seconds, and its name.
UNITS = ((2 * 3600, 3600, _("hours")), (120, 60, _("minutes")), (0, 1, _("seconds")))
# The colour of SUPERSEDED must differ from that of CANCELLED in the same chart.
TONES = {ActionPlan.State.SUPERSEDED: "recommended"}
Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Series:
    """The values of a chart by day, with the name of their colour in the style sheet."""

    label: Text
    tone: str
    by_day: Mapping[date, float] = field(default_factory=dict)
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Stacked bars (``bar``) or lines (``line``) over the days of a period, and the same values as a table."""

    name: str
    kind: str
    title: Text
    note: Text
    empty: Text
    days: Sequence[date]
    series: Sequence[Series]
    unit: Text = ""

    @property
    def is_empty(self) -> bool:
        return not any(series.by_day for series in self.series)

    @property
    def data(self) -> str:
        """Return the chart as JSON for the script. Days without values are 0 in bars, and null in lines."""
        missing = 0 if self.kind == "bar" else None
        series = [
            {
                "label": str(line.label),
                "tone": line.tone,
                "dashed": line.dashed,
                "values": [line.by_day.get(day, missing) for day in self.days],
            }
            for line in self.series
        ]
        days = [date_format(day, gettext("d M")) for day in self.days]
        return json.dumps({"kind": self.kind, "unit": str(self.unit), "days": days, "series": series})

    @property
    def rows(self) -> SafeString:
        """Return the rows of the table: the days with values, latest first.

        A template would be too slow for thousands of cells.
        """
        missing = "0" if self.kind == "bar" else "—"
        shown = [day for day in reversed(self.days) if any(day in series.by_day for series in self.series)]
        return format_html_join(
            "\n",
            '<tr><th scope="row" class="text-nowrap">{}</th>{}</tr>',
            ((day.isoformat(), self.cells(day, missing)) for day in shown),
        )

    def cells(self, day: date, missing: str) -> SafeString:
        values = (series.by_day.get(day) for series in self.series)
        texts = ((missing if value is None else localize(round(value, 1)),) for value in values)
        return format_html_join("", '<td class="text-end number">{}</td>', texts)


class Trends(Page, TemplateView):
    """The charts of a period. For htmx, the part that the overview shows."""

    permission_required = ()

    def get_template_names(self) -> list[str]:
        return ["trends/_trends.html" if getattr(self.request, "htmx", False) else "trends/trends.html"]

    def has_permission(self) -> bool:
        """Allow all logged-in users: the page omits data that they may not view."""
        return self.request.user.is_authenticated

    @cached_property
    def days(self) -> int:
        text = self.request.GET.get("days", "")
        return int(text) if text in map(str, RANGES) else DEFAULT_DAYS

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        sees_plans = self.may("plans.view_actionplan") and self.may("actions.view_action")
        return super().get_context_data(
            ranges=RANGES,
            days=self.days,
            **(find_charts(self.days) if sees_plans else {}),
            capacity=capacity_in_use() if self.may("cluster.view_computenode") else None,
            waiting=waiting_servers() if self.may("cluster.view_server") else None,
            **context,
        )


def find_charts(number: int) -> dict[str, Any]:
    """Return the charts of a number of days, with the time of their creation. They are cached for `KEPT` seconds."""
    key = f"trends-{number}"
    context = cache.get(key)
    if context is None:
        context = {"charts": list(make_charts(number)), "charts_made_at": timezone.now()}
        cache.set(key, context, KEPT)
    return dict(context)


def make_charts(number: int) -> Iterable[Chart]:
    """Yield the charts of a number of days up to today, in three queries."""
    today = timezone.now().astimezone(UTC).date()
    days = [today - timedelta(days=past) for past in reversed(range(number))]
    since = datetime.combine(days[0], datetime.min.time(), UTC)
    plans, actions = ActionPlan.objects.present(), Action.objects.present()
    no_plans, no_actions = _("No plans in this period."), _("No actions in this period.")
    ended = list(count_by_day(plans.filter(state__in=ActionPlan.FINAL), "end_time", since))
    yield chart_of_outcomes("plans", _("Plans"), _("by outcome, on the day of their end"), no_plans, days, ended)
    yield chart_of_durations("plan-durations", _("Duration of plans"), no_plans, days, ended)
    # Skipped and cancelled actions that never began have no end time.
    done = list(count_by_day(actions.filter(state__in=Action.FINAL), "updated_at", since))
    yield chart_of_outcomes("actions", _("Actions"), _("by outcome, on the day of their end"), no_actions, days, done)
    yield chart_of_durations("action-durations", _("Duration of actions"), no_actions, days, done)
    yield chart_of_efficacy(plans, days, since, _("No plans with an efficacy in this period."))


def count_by_day(records: QuerySet[Any], moment: str, since: datetime) -> Rows:
    """Return the number of records by day and state, and the number, sum and maximum of their durations."""
    by_day = records.filter(**{f"{moment}__gte": since}).order_by().annotate(length=LENGTH)
    return (
        by_day.annotate(day=TruncDate(moment, tzinfo=UTC))
        .values("day", "state")
        .annotate(number=Count("pk"), timed=Count("length"), total=Sum("length"), longest=Max("length"))
    )


def chart_of_outcomes(name: str, title: Text, note: Text, empty: Text, days: Sequence[date], rows: Rows) -> Chart:
    by_state: dict[str, dict[date, float]] = {}
    for row in rows:
        by_state.setdefault(row["state"], {})[row["day"]] = row["number"]
    series = [
        Series(state, TONES.get(state, state.lower()), by_state[state]) for state in sorted(by_state, reverse=True)
    ]
    return Chart(name, "bar", title, note, empty, days, series)


def chart_of_durations(name: str, title: Text, empty: Text, days: Sequence[date], rows: Rows) -> Chart:
    numbers: dict[date, int] = {}
    totals: dict[date, float] = {}
    longest: dict[date, float] = {}
    for row in rows:
        if row["timed"]:
            day = row["day"]
            numbers[day] = numbers.get(day, 0) + row["timed"]
            totals[day] = totals.get(day, 0) + row["total"].total_seconds()
            longest[day] = max(longest.get(day, 0), row["longest"].total_seconds())
    most = max(longest.values(), default=0)
    divisor, unit = next((divisor, unit) for minimum, divisor, unit in UNITS if most >= minimum)
    series = [
        Series(_("average"), "ongoing", {day: totals[day] / numbers[day] / divisor for day in totals}),
        Series(_("longest"), "skipped", {day: value / divisor for day, value in longest.items()}, dashed=True),
    ]
    return Chart(name, "line", title, unit, empty, days, series, unit)


def chart_of_efficacy(plans: QuerySet[ActionPlan], days: Sequence[date], since: datetime, empty: Text) -> Chart:
    """Return the chart of the most frequent global efficacy: those of different goals cannot be compared.

    The reached efficacy is not measured, but is the prediction times the share of successful actions.
    """
    plan_actions = Action.objects.present().filter(action_plan=OuterRef("pk")).order_by().values("action_plan")
    counts = plan_actions.annotate(
        share=Cast(Count("pk", filter=Q(state=Action.State.SUCCEEDED)), FloatField()) / Count("pk")
    )
    first = KeyTransform("0", "global_efficacy")
    rows = list(
        plans.filter(end_time__gte=since, start_time__isnull=False)
        .order_by()
        .annotate(
            day=TruncDate("end_time", tzinfo=UTC),
            indicator=KeyTextTransform("name", first),
            unit=KeyTextTransform("unit", first),
            predicted=Cast(KeyTextTransform("value", first), FloatField()),
            share=Coalesce(Subquery(counts.values("share"), output_field=FloatField()), 0.0),
        )
        .exclude(predicted=None)
        .values("day", "indicator", "unit")
        .annotate(number=Count("pk"), mean=Avg("predicted"), reached=Avg(F("predicted") * F("share")))
    )
    numbers: dict[tuple[str, str], int] = {}
    for row in rows:
        kind = row["indicator"], row["unit"] or ""
        numbers[kind] = numbers.get(kind, 0) + row["number"]
    indicator, unit = max(numbers, key=lambda kind: (numbers[kind], kind), default=("", ""))
    efficacy_rows = [row for row in rows if (row["indicator"], row["unit"] or "") == (indicator, unit)]
    series = [
        Series(_("predicted"), "recommended", {row["day"]: row["mean"] for row in efficacy_rows}, dashed=True),
        Series(
            _("reached, by the actions that succeeded"),
            "succeeded",
            {row["day"]: row["reached"] for row in efficacy_rows},
        ),
    ]
    note = f"{humanize_name(indicator)} ({unit})" if unit else humanize_name(indicator)
    return Chart("efficacy", "line", _("Efficacy"), note, empty, days, series, unit)


def waiting_servers() -> dict[str, Any]:
    """Return the number of servers that wait for capacity, and the earliest start of a wait, in one query."""
    return Server.objects.waiting().aggregate(number=Count("pk"), since=Min("wait__since"))
