"""The timeline of a plan: its bars and lanes, and its page."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from actions.console.intervals import Interval, Kind
from actions.models import Action, ActionEvent
from plans.console.times.timeline import BY_ACTION, BY_NODE, BY_WORKER, LABEL, PLOT, Row, Timeline, draw_timeline
from plans.models import ActionPlan
from tests.builders import action, make_plan

START = datetime(2026, 11, 23, 10, tzinfo=UTC)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def row(
    name: str, *spans: tuple[Kind, int, int, int], host: str = "h", state: str = "SUCCEEDED", node: str = ""
) -> Row:
    """Make a row of an action with intervals of these kinds, starts, ends and attempts."""
    action = Action(action_type="migrate", input_parameters={"resource_name": name, "source_node": node}, state=state)
    intervals = [Interval(kind, at(start), at(end), attempt, host=host) for kind, start, end, attempt in spans]
    return Row(action, intervals)


def drawn(*rows: Row, pauses: list[Interval] | None = None, by: str = BY_ACTION) -> Timeline:
    timeline = draw_timeline(rows, pauses or [], by)
    assert timeline is not None
    return timeline


def looks(timeline: Timeline) -> list[list[str]]:
    return [[bar.look for bar in lane.bars] for lane in timeline.lanes]


def test_bar_widths_are_proportional_to_the_intervals() -> None:
    timeline = drawn(row("a", (Kind.RUNNING, 0, 50, 1)), row("b", (Kind.QUEUED, 0, 75, 0), (Kind.RUNNING, 75, 100, 1)))
    places = [[(float(bar.x), float(bar.width)) for bar in lane.bars] for lane in timeline.lanes]
    assert places == [[(LABEL, PLOT / 2)], [(LABEL, 3 * PLOT / 4), (LABEL + 3 * PLOT / 4, PLOT / 4)]]


def test_only_the_last_attempt_has_the_colour_of_the_state() -> None:
    failed = row(
        "a",
        (Kind.RUNNING, 0, 10, 1),
        (Kind.DEFERRED, 10, 20, 1),
        (Kind.RUNNING, 20, 30, 2),
        (Kind.SUSPENDED, 30, 40, 2),
        (Kind.RUNNING, 40, 50, 2),
        state="FAILED",
    )
    last = "running fill-failed"
    assert looks(drawn(failed)) == [["running fill-skipped", "deferred", last, "suspended", last]]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("evil\u202ename", 'migrate evil<tspan class="control">U+202E</tspan>name'),
        ("U+202E\u202e", 'migrate U+202E<tspan class="control">U+202E</tspan>'),
        ("<b>" + "x" * 18 + "\u202e", f"migrate &lt;b&gt;{'x' * 18}U+…"),
        ("x" * 40 + "\u202e", f"migrate {'x' * 23}…"),
    ],
)
def test_label_marks_control_characters_with_elements(name: str, label: str) -> None:
    assert [lane.label for lane in drawn(row(name, (Kind.RUNNING, 0, 10, 1))).lanes] == [label]


def test_overlapping_actions_of_a_process_have_separate_rows() -> None:
    rows = [
        *(row("a", (Kind.RUNNING, 0, 10, 1)), row("b", (Kind.RUNNING, 5, 20, 1)), row("c", (Kind.RUNNING, 10, 30, 1))),
        row("d", (Kind.RUNNING, 0, 30, 1), host="other"),
    ]
    assert [(lane.label, lane.rows) for lane in drawn(*rows, by=BY_WORKER).lanes] == [("h", 2), ("other", 1)]


def test_nodes_show_the_number_and_duration_of_their_actions() -> None:
    rows = [row(str(n), (Kind.RUNNING, n, n + 5, 1), node="compute-1") for n in (0, 10)]
    groups = drawn(*rows, by=BY_NODE).groups
    assert [(one.label, one.actions, one.running) for one in groups] == [("compute-1", 2, timedelta(seconds=10))]


def test_suspension_of_the_plan_is_drawn_over_the_whole_height() -> None:
    pause = Interval(Kind.SUSPENDED, at(-50), at(50))
    timeline = drawn(row("a", (Kind.RUNNING, 0, 100, 1)), pauses=[pause])
    assert [(float(bar.x), float(bar.width)) for bar in timeline.pauses] == [(LABEL, PLOT / 2)]


@pytest.mark.parametrize("seconds", [0, 1, 45, 3600, 100_000, 40_000_000])
def test_axis_has_at_most_nine_ticks(seconds: int) -> None:
    assert 1 <= len(drawn(row("a", (Kind.RUNNING, 0, seconds, 1))).ticks) <= 9


@pytest.fixture
def plan(db: None) -> ActionPlan:
    """An ongoing plan of three actions: the first ended after 20 seconds on applier-1, the second runs."""
    cache.clear()
    plan = make_plan({"a": [], "b": [], "c": ["a"]}, state="ONGOING", start_time=START)
    begin(plan, "a", 20, state="SUCCEEDED", end_time=at(20))
    begin(plan, "b", None)
    return plan


def begin(plan: ActionPlan, name: str, finish: int | None, **columns: object) -> None:
    begun = action(plan, name)
    columns = {"state": "ONGOING", **columns}
    Action.objects.filter(pk=begun.pk).update(
        attempt=1, start_time=START, created_at=START, updated_at=START, **columns
    )
    ActionEvent.objects.create(
        action=begun, event="execute", attempt=1, start_time=START, finish_time=finish and at(finish), host="applier-1"
    )


@pytest.fixture
def browser(client: Client, cloud_admin: User) -> Client:
    client.force_login(cloud_admin)
    return client


def text(client: Client, plan: ActionPlan, **options: object) -> str:
    return " ".join(client.get(reverse("plans:timeline", args=[plan.uuid]), options).content.decode().split())


def test_timeline_page_shows_times_as_a_picture_and_as_a_table(browser: Client, plan: ActionPlan) -> None:
    shown = text(browser, plan)
    for words in (
        "2 of 3 actions started",
        "2026-11-23 10:00:00 → 10:00:20, 20 s</title>",
        "20 s</td>",
        "applier-1",
    ):
        assert words in shown


@pytest.mark.parametrize("by", ["action", "worker", "node", "nonsense"])
def test_timeline_query_count_does_not_depend_on_the_number_of_actions(
    browser: Client, plan: ActionPlan, by: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with CaptureQueriesContext(connection) as few:
        text(browser, plan, by=by)
    begin(plan, "c", None)
    cache.clear()
    with django_assert_num_queries(len(few)):
        assert "3 of 3 actions started" in text(browser, plan, by=by)


def test_timeline_of_a_plan_that_has_not_begun_has_no_picture(browser: Client, db: None) -> None:
    assert "No action of the plan has started yet." in text(browser, make_plan({"a": []}))


def test_unchanged_timeline_is_answered_with_304(browser: Client, plan: ActionPlan) -> None:
    url = reverse("plans:timeline", args=[plan.uuid])
    version = browser.get(url).context["version"]
    assert browser.get(url, headers={"HX-Request": "true", "HX-PTag": version}).status_code == 304
    ActionPlan.objects.update(state="SUCCEEDED")
    assert browser.get(url, headers={"HX-Request": "true", "HX-PTag": version}).status_code == 200
