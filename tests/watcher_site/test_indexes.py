"""Every sort that the API offers on a column of its own is served by an index, in both directions."""

import pytest
from django.db import connection

from actions.api import ActionView
from audits.api import AuditTemplateView, AuditView, GoalView, ScoringEngineView, StrategyView
from plans.api import ActionPlanView
from watcher_site.api.paging import Page
from watcher_site.api.services import ServiceView

pytestmark = [pytest.mark.django_db, pytest.mark.postgresql]

VIEWS = [
    ActionPlanView,
    ActionView,
    AuditTemplateView,
    AuditView,
    GoalView,
    ScoringEngineView,
    ServiceView,
    StrategyView,
]
# What is sorted by a column of another table is sorted by a join: no index of either table holds its order.
SORTS = [(view, column) for view in VIEWS for column in view.sort_keys.values() if "__" not in column]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("view", "column"), SORTS, ids=lambda value: getattr(value, "policy", value))
def test_a_sort_is_read_from_an_index(view: type[ActionView], column: str, descending: bool) -> None:
    page = Page(100, None, column, column, descending, {})
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
    plan = page.cut(view.model.objects.all(), None).explain()
    assert "Index Scan" in plan
    assert "Sort" not in plan
