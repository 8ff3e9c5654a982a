"""Indexes serve every sort of the API and the console by a column of the table, in both directions, and filters."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import F, QuerySet
from django.utils import timezone

import cluster.console.infrastructure
import cluster.console.policies
import cluster.console.profiles
import plans.console.clusters.pages
import plans.console.servers
import watcher_site.console.subscriptions
import watcher_site.console.undelivered
from actions.api.actions import ActionView
from actions.console.views import ActionFilters, ActionList
from actions.models import Action
from audits.api.audits import AuditTemplateView, AuditView, GoalView, ScoringEngineView, StrategyView
from audits.console.views import AuditList
from cluster.api.policies import PolicyView
from cluster.api.profiles import ProfileView
from cluster.models import Server, Stack
from plans.api.action_plans import ActionPlanView
from plans.api.clusters.clusters import ClusterView
from plans.api.clusters.nodes import NodeView
from plans.api.exclusions import ExclusionView
from plans.api.servers import ServerView
from plans.api.stack_resources import StackResourceView
from plans.api.stacks import StackView
from plans.console.exclusions import ExclusionList
from plans.console.views import ActionPlanList
from plans.models import ActionPlan
from watcher_site.api.paging import Page, SortKey
from watcher_site.api.resources.history import HistoryView
from watcher_site.api.resources.services import ServiceView
from watcher_site.api.resources.subscriptions import SubscriptionView, UndeliveredView
from watcher_site.console.history import HistoryList
from watcher_site.history.reading import narrow
from watcher_site.models import HistoryEntry

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

VIEWS = [
    ActionPlanView,
    ActionView,
    AuditTemplateView,
    AuditView,
    ClusterView,
    ExclusionView,
    GoalView,
    HistoryView,
    NodeView,
    PolicyView,
    ProfileView,
    ScoringEngineView,
    ServerView,
    ServiceView,
    StackResourceView,
    StackView,
    StrategyView,
    SubscriptionView,
    UndeliveredView,
]
# An index of one table cannot hold an order by a column of another table, or by an expression over several tables.
SORTS = [
    (view, column)
    for view in VIEWS
    for column in dict.fromkeys(view.sort_keys.values())
    if "__" not in column and column not in view.sort_expressions
]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("view", "column"), SORTS, ids=lambda value: getattr(value, "policy", value))
def test_api_sort_uses_an_index(view: type[ActionView], column: str, descending: bool) -> None:
    page = Page(100, None, (SortKey(column, column, descending),))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    (rows,) = page.parts(view.model.objects.all(), None)
    plan = rows[: page.limit].explain()
    assert "Index Scan" in plan
    assert "Sort" not in plan


def sample(view: type[ActionView], column: str) -> Any:
    """Return a value of a column."""
    kind = view.model._meta.get_field(column).get_internal_type()
    return {"UUIDField": uuid4(), "DateTimeField": timezone.now(), "BooleanField": True}.get(kind, "1")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("view", "column"), SORTS, ids=lambda value: getattr(value, "policy", value))
def test_rows_after_a_marker_are_found_by_an_index(view: type[ActionView], column: str, descending: bool) -> None:
    page = Page(100, None, (SortKey(column, column, descending),))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
    values = [sample(view, column), 1][: len(page.order)]
    for part in page.parts(view.model.objects.all(), values):
        plan = part[: page.limit].explain()
        assert "Index Cond" in plan
        assert "Sort" not in plan


NAMED = [ClusterView, ExclusionView, NodeView, PolicyView, ProfileView]


@pytest.mark.parametrize("view", NAMED, ids=lambda view: view.policy)
def test_case_insensitive_name_is_found_by_an_index(view: type[Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    names = ["a", "b"] if "name" in view.repeatable else "a"
    found = view().filter_name(view.model.objects.present().order_by(), names)
    plan = found.explain()
    assert "upper((name)::text) = 'A'::text" in plan
    assert "Index Cond" in plan


LISTS = [
    ActionList,
    ActionPlanList,
    AuditList,
    HistoryList,
    ExclusionList,
    plans.console.clusters.pages.ClusterList,
    plans.console.clusters.pages.NodeList,
    cluster.console.policies.PolicyList,
    cluster.console.profiles.ProfileList,
    cluster.console.infrastructure.ComputeNodeList,
    cluster.console.infrastructure.PoolList,
    plans.console.servers.ServerList,
    cluster.console.infrastructure.VolumeList,
    watcher_site.console.subscriptions.SubscriptionList,
    watcher_site.console.undelivered.UndeliveredList,
]
# The use of a node is a sum over its servers, which no index holds; there are only as many rows as machines.
SUMS = {"vcpus", "memory", "disk"}


def own_columns(page: Any) -> list[str]:
    """Return the sortable columns of a page's table, without joined columns and sums."""
    columns = page.table_class([]).columns
    sums = SUMS if page is cluster.console.infrastructure.ComputeNodeList else set()
    return [
        column.name
        for column in columns
        if column.orderable and column.name not in sums and "__" not in str(column.accessor)
    ]


def explain(rows: QuerySet[Any]) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute("SET LOCAL enable_bitmapscan = off")
    return rows.explain()


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize(
    ("page", "column"), [(page, column) for page in LISTS for column in own_columns(page)], ids=str
)
def test_console_sort_uses_an_index(page: Any, column: str, sign: str) -> None:
    table = page.table_class(page.model.objects.present(), order_by=f"{sign}{column}")
    plan = explain(table.data.data[:50])
    assert "Index" in plan
    assert "Sort" not in plan


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (page, name)
        for page in LISTS
        for name, chosen in page.filterset_class.base_filters.items()
        if chosen.lookup_expr == "exact" and not chosen.method and "__" not in chosen.field_name
    ],
    ids=str,
)
def test_console_choice_filter_has_an_index(page: Any, name: str) -> None:
    column = page.filterset_class.base_filters[name].field_name
    first = [index.expressions[0] for index in page.model._meta.indexes]
    assert column in {expression.name for expression in first if isinstance(expression, F)}


@pytest.mark.parametrize("column", ["name", "state", "project_id", "flavor", "node__hostname"])
def test_server_filter_uses_an_index(column: str) -> None:
    plan = explain(Server.objects.order_by().filter(**{column: "x"}))
    assert re.search(rf"Index Cond: .*\b{column.rpartition('__')[2]}\b", plan), plan


@pytest.mark.parametrize("column", ["name", "status", "project_id"])
def test_stack_filter_uses_an_index(column: str) -> None:
    plan = explain(Stack.objects.order_by().filter(**{column: "x"}))
    assert re.search(rf"Index Cond: .*\b{column}\b", plan), plan


def test_continuations_of_a_plan_are_found_by_an_index() -> None:
    plan = explain(ActionPlan.objects.filter(continues=1))
    assert "action_plan_continues" in plan
    assert "Seq Scan" not in plan


def test_actions_are_counted_by_state_from_an_index() -> None:
    rows = Action.objects.present().filter(state=Action.State.PENDING).values("pk").order_by()
    assert "Index Only Scan using action_state_key" in explain(rows[:100])


def test_ready_actions_find_their_parents_by_key() -> None:
    plan = explain(Action.objects.ready().filter(action_plan=1).order_by("pk"))
    assert "using actions_action_pkey on actions_action u0" in plan, plan


@pytest.mark.parametrize("name", ["since", "before"])
def test_history_time_filter_uses_an_index(name: str) -> None:
    entries = narrow(HistoryEntry.objects.order_by("-pk"), {name: timezone.now()})
    assert re.search(r"Index Cond: \(id [<>] COALESCE", explain(entries[:100]))


def test_action_type_filter_uses_an_index() -> None:
    chosen = ActionFilters({"action_type": "migrate"}, Action.objects.order_by())
    assert re.search(r"Index Cond: .*\baction_type\b", explain(chosen.qs))
