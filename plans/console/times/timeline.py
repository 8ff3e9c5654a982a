"""The timeline of a plan: the intervals in which its actions ran and waited, by action, process or compute node.

A bar is an interval of an action. A lane has one row of bars for an action, or as many rows as actions ran at the same
time in one process or on one compute node.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from html import escape
from typing import Any, NamedTuple

from django.db.models import F, Max, OuterRef, QuerySet, Subquery
from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_lazy

from actions.console.intervals import Interval, Kind, intervals_of, total_duration
from actions.models import Action, ActionEvent, ActionParent
from actions.models.naming import resource, type_and_resource
from plans.models import ActionPlan
from watcher_site.messages import cut
from watcher_site.templatetags.names import svg_label, visible
from watcher_site.windows.durations import describe_duration

BY_ACTION, BY_WORKER, BY_NODE = "action", "worker", "node"
GROUPINGS = {BY_ACTION: gettext_lazy("Actions"), BY_WORKER: gettext_lazy("Processes"), BY_NODE: gettext_lazy("Nodes")}
# The number of actions on a page. Grouped by action, each needs a row.
MOST = {BY_ACTION: 100, BY_WORKER: 1000, BY_NODE: 1000}
# The types of actions whose resource is a compute node.
NODE_TYPES = frozenset({"change_nova_service_state", "change_node_power_state"})
# The columns of actions for lanes of processes and nodes, without models: the page takes 0.8 times as long. Rows of
# single actions show more.
DRAWN = ("pk", "action_type", "input_parameters", "state", "created_at", "end_time", "parents_end")
# The columns of events from which intervals are computed.
COLUMNS = ("action_id", "event", "attempt", "start_time", "finish_time", "result", "host")
LABEL, PLOT, ROW, AXIS = 230, 960, 24, 24
LABEL_LENGTH = 32
LEAST_WIDTH = 2.0
# By kind of interval: the distance of a bar from the top of its row, and its height.
SHAPES = {Kind.RUNNING: (4, 16), Kind.SUSPENDED: (4, 16)}
LINE = (10, 4)
MOST_TICKS = 8
STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400]
KINDS = {
    Kind.RUNNING: gettext_lazy("running, in the colour of the state"),
    Kind.SUSPENDED: gettext_lazy("suspended"),
    Kind.DEFERRED: gettext_lazy("deferred until the next attempt"),
    Kind.WAITING: gettext_lazy("waiting for derived actions"),
    Kind.QUEUED: gettext_lazy("waiting for a free process"),
}


@dataclass(frozen=True)
class Row:
    """An action, or its columns `DRAWN`, with its intervals."""

    action: Any
    intervals: list[Interval]

    @property
    def called(self) -> str:
        return type_and_resource(self.action.action_type, self.action.input_parameters)

    @property
    def worker(self) -> str:
        """The host of the last process that ran the action."""
        return next((one.host for one in reversed(self.intervals) if one.host), "")

    @property
    def node(self) -> str:
        """The source node of the action, or the compute node that is its target."""
        parameters = self.action.input_parameters
        own = resource(parameters) if self.action.action_type in NODE_TYPES else ""
        return str(parameters.get("source_node") or own)

    @property
    def durations(self) -> dict[str, timedelta]:
        return {str(kind): total_duration(self.intervals, kind) for kind in Kind}

    @property
    def start(self) -> datetime | None:
        return next((one.start for one in self.intervals if one.kind == Kind.RUNNING), None)


class Bar(NamedTuple):
    """A rectangle. Its numbers are texts, so that they are not localized."""

    x: str
    y: str
    width: str
    height: str
    look: str
    title: str

    @property
    def svg(self) -> SafeString:
        """Return the SVG element. A template would be too slow for a thousand bars."""
        place = f'x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}"'
        title = escape(self.title)
        return mark_safe(f'<rect class="span-{self.look}" {place}><title>{title}</title></rect>')  # noqa: S308 (escaped)


@dataclass
class Lane:
    """The rows of one action, process or node. The label is SVG, and ``top`` is the position of the first row."""

    label: str
    top: int
    rows: int = 1
    bars: list[Bar] = field(default_factory=list)

    @property
    def text_y(self) -> str:
        return str(self.top + 16)

    @property
    def svg(self) -> SafeString:
        return mark_safe("".join(bar.svg for bar in self.bars))  # noqa: S308 (each bar is escaped)


@dataclass(frozen=True)
class Group:
    """A line of the table of processes or nodes."""

    label: str
    actions: int
    running: timedelta
    start: datetime
    end: datetime


class Scale:
    """The horizontal positions of times between the earliest start and the latest end of some intervals."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        found = list(intervals)
        self.start = min(one.start for one in found)
        self.end = max([one.end for one in found] + [self.start + timedelta(seconds=1)])
        self.seconds = (self.end - self.start).total_seconds()
        self.titles = Titles()

    def place(self, moment: datetime) -> float:
        moment = min(max(moment, self.start), self.end)
        return LABEL + PLOT * (moment - self.start).total_seconds() / self.seconds

    def bar(self, one: Interval, top: int, look: str, title: str) -> Bar:
        x = self.place(one.start)
        width = max(self.place(one.end) - x, LEAST_WIDTH)
        offset, height = SHAPES.get(one.kind, LINE)
        return Bar(f"{x:.1f}", str(top + offset), f"{width:.1f}", str(height), look, title)

    def ticks(self) -> list[tuple[str, str]]:
        """Return the positions and labels of the ticks on the time axis, at round times."""
        days = (step * 86_400 for step in range(2, 4000))
        step = next(one for one in (*STEPS, *days) if self.seconds / one <= MOST_TICKS)
        shift = int((timezone.localtime(self.start).utcoffset() or timedelta()).total_seconds())
        first = -(-int((self.start.timestamp() + shift) * 1000) // (step * 1000)) * step - shift
        seconds = range(first, int(self.end.timestamp()) + 1, step)
        moments = [timezone.localtime(datetime.fromtimestamp(second, UTC)) for second in seconds]
        pattern = "%H:%M:%S" if self.seconds < 86_400 else "%m-%d %H:%M"
        return [(f"{self.place(moment):.1f}", f"{moment:{pattern}}") for moment in moments]


@dataclass
class Timeline:
    lanes: list[Lane]
    pauses: list[Bar]
    ticks: list[tuple[str, str]]
    groups: list[Group] = field(default_factory=list)

    @property
    def label_width(self) -> int:
        return LABEL - 6

    @property
    def width(self) -> int:
        return LABEL + PLOT + 20

    @property
    def height(self) -> int:
        return AXIS + ROW * sum(lane.rows for lane in self.lanes)


def actions_in_order(plan: ActionPlan, grouping: str) -> QuerySet[Any, Any]:
    """Select the actions of a plan that began, in the order of their last start, with ``parents_end``."""
    ended = ActionParent.objects.filter(child=OuterRef("pk")).order_by().values("child")
    parents = Subquery(ended.annotate(last=Max("parent__end_time")).values("last"))
    began = plan.actions.present().filter(attempt__gt=0).annotate(parents_end=parents)
    began = began.order_by(F("start_time").asc(nulls_last=True), "pk")
    return began.defer("data", "initial_data") if grouping == BY_ACTION else began.values_list(*DRAWN, named=True)


def read_rows(actions: Sequence[Any], plan: ActionPlan, now: datetime) -> list[Row]:
    """Return the actions with their intervals, with one query."""
    events: dict[int, list[Any]] = defaultdict(list)
    found = ActionEvent.objects.filter(action__in=[action.pk for action in actions]).order_by("pk")
    for event in found.values_list(*COLUMNS, named=True):
        events[event.action_id].append(event)
    rows = []
    for action in actions:
        intervals = intervals_of(action, events[action.pk], now)
        rows.append(Row(action, [*queued_intervals(action, plan, intervals), *intervals]))
    return rows


def queued_intervals(action: Any, plan: ActionPlan, intervals: Sequence[Interval]) -> list[Interval]:
    """Return the interval from the end of an action's parents, or the start of the plan, to its first phase."""
    if not intervals or plan.start_time is None:
        return []
    since = max(moment for moment in (plan.start_time, action.created_at, action.parents_end) if moment)
    first = intervals[0].start
    return [Interval(Kind.QUEUED, since, first)] if since < first else []


def draw_timeline(rows: Sequence[Row], pauses: Sequence[Interval], grouping: str) -> Timeline | None:
    """Return the timeline of these actions; None if none of them has an interval."""
    rows = [row for row in rows if row.intervals]
    if not rows:
        return None
    scale = Scale(one for row in rows for one in row.intervals)
    if grouping == BY_ACTION:
        lanes, groups = [own_lane(row, number, scale) for number, row in enumerate(rows)], []
    else:
        members: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            members[row.worker if grouping == BY_WORKER else row.node].append(row)
        lanes, groups = shared_lanes(members, scale), [group_of(label, members[label]) for label in sorted(members)]
    timeline = Timeline(lanes, [], scale.ticks(), groups)
    for pause in pauses:
        if pause.start < scale.end and scale.start < pause.end:
            bar = scale.bar(pause, 0, "pause", scale.titles.describe(gettext("The plan"), pause))
            timeline.pauses.append(bar._replace(y=str(AXIS), height=str(timeline.height - AXIS)))
    return timeline


def own_lane(row: Row, number: int, scale: Scale) -> Lane:
    top = AXIS + ROW * number
    return Lane(label_of(row.called), top, bars=bars_of(row, row.intervals, top, scale))


def label_of(text: str) -> SafeString:
    return svg_label(text, lambda shown: cut(shown, LABEL_LENGTH))


def shared_lanes(members: dict[str, list[Row]], scale: Scale) -> list[Lane]:
    """Return a lane for each process or node, with as many rows as actions ran there at the same time."""
    lanes, top = [], AXIS
    for label in sorted(members):
        lane = Lane(label_of(label) or gettext("none"), top)
        free: list[datetime] = []
        for row in sorted(members[label], key=lambda row: row.start or scale.end):
            shown = [one for one in row.intervals if one.kind in SHAPES]
            if not shown:
                continue
            place = next((number for number, end in enumerate(free) if end <= shown[0].start), len(free))
            free[place : place + 1] = [shown[-1].end]
            lane.bars += bars_of(row, shown, top + ROW * place, scale)
        lane.rows = max(len(free), 1)
        top += ROW * lane.rows
        lanes.append(lane)
    return lanes


def bars_of(row: Row, intervals: Sequence[Interval], top: int, scale: Scale) -> list[Bar]:
    last = max((one.attempt for one in intervals if one.kind == Kind.RUNNING), default=0)
    name, titles = visible(row.called), scale.titles
    return [
        scale.bar(one, top, bar_class(row.action, one, one.attempt == last), titles.describe(name, one))
        for one in intervals
    ]


def bar_class(action: Any, interval: Interval, is_last: bool) -> str:
    """Return the class of a bar: the last attempt of an action has the colour of its state."""
    if interval.kind != Kind.RUNNING:
        return str(interval.kind)
    if is_last and action.state != Action.State.PENDING:
        return f"running fill-{action.state.lower()}"
    return "running fill-failed" if interval.has_failed else "running fill-skipped"


class Titles:
    """The titles of bars.

    Translations and the time zone are looked up once for all bars: the page takes 0.9 times as long.
    """

    def __init__(self) -> None:
        self.zone = timezone.get_current_timezone()
        self.gettext = cache(gettext)
        self.labels = {kind: str(label) for kind, label in KINDS.items()} | {Kind.RUNNING: gettext("running")}

    def describe(self, name: str, interval: Interval) -> str:
        attempt = self.gettext(" (attempt %(number)s)") % {"number": interval.attempt} if interval.attempt > 1 else ""
        start, end = (moment.astimezone(self.zone).isoformat(" ")[:19] for moment in (interval.start, interval.end))
        until = "…" if interval.is_open else end[11:]
        duration = describe_duration(interval.duration, self.gettext)
        return f"{name}{attempt}: {self.labels[interval.kind]}, {start} → {until}, {duration}"


def group_of(label: str, rows: Sequence[Row]) -> Group:
    intervals = [one for row in rows for one in row.intervals if one.kind == Kind.RUNNING]
    running = sum((one.duration for one in intervals), timedelta())
    return Group(
        label or gettext("none"),
        len(rows),
        running,
        min((one.start for one in intervals), default=rows[0].intervals[0].start),
        max((one.end for one in intervals), default=rows[0].intervals[-1].end),
    )
