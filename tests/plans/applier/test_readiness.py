"""An action is queried when its last parent ended, and not at the end of each parent."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from pytest_django import Settings

from actions.models import Action
from plans.applier.readiness import KEYS, Releases
from plans.models import ActionPlan
from tests.builders import action, make_plan
from tests.plans.applier.test_commits import counted

pytestmark = pytest.mark.django_db
PARENTS = [f"p{number}" for number in range(40)]


def finish(plan: ActionPlan, name: str) -> int:
    found = action(plan, name)
    Action.objects.filter(pk=found.pk).update(state="SUCCEEDED")
    return found.pk


def names(found: list[Action]) -> list[str]:
    return [one.input_parameters["message"] for one in found]


def test_action_with_many_parents_is_queried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan({**{name: [] for name in PARENTS}, "last": PARENTS})
    releases = Releases()
    releases.next_recheck = float("inf")
    queried: list[str] = []
    for name in PARENTS:
        releases.record_end(finish(plan, name))
        with counted() as statements:
            found = releases.find_ready()
        queried += [name] * (len(statements) - 1)
    assert (queried, names(found)) == ([PARENTS[0], PARENTS[-1]], ["last"])


def test_child_of_parents_that_ended_together_is_queried_once(
    django_assert_num_queries: Callable[[int], AbstractContextManager[None]],
) -> None:
    plan = make_plan({**{name: [] for name in PARENTS}, "last": PARENTS})
    releases = Releases()
    for name in PARENTS:
        releases.record_end(finish(plan, name))
    with django_assert_num_queries(len(PARENTS) // len(KEYS) + 1):
        assert names(releases.find_ready()) == ["last"]


def test_parent_counted_before_its_report_is_not_counted_again() -> None:
    """The table contains both ends when the first is reported."""
    plan = make_plan({"a": [], "b": [], "c": [], "last": ["a", "b", "c"]})
    releases = Releases()
    first, second = finish(plan, "a"), finish(plan, "b")
    releases.record_end(first)
    assert releases.find_ready() == []
    releases.record_end(second)
    assert releases.find_ready() == []
    releases.record_end(finish(plan, "c"))
    assert names(releases.find_ready()) == ["last"]


def test_parent_that_ends_without_a_report_is_noticed_at_the_next_recheck(settings: Settings) -> None:
    settings.POLL_INTERVAL = 3600
    plan = make_plan({"a": [], "b": [], "c": [], "last": ["a", "b", "c"]})
    releases = Releases()
    releases.next_recheck = float("inf")
    releases.record_end(finish(plan, "a"))
    assert releases.find_ready() == []
    finish(plan, "b")
    releases.record_end(finish(plan, "c"))
    assert (releases.find_ready(), bool(releases)) == ([], False)
    releases.next_recheck = 0
    assert releases
    assert names(releases.find_ready()) == ["last"]


def test_child_in_a_final_state_is_not_released() -> None:
    plan = make_plan({"a": [], "last": ["a"]})
    finish(plan, "last")
    releases = Releases()
    releases.record_end(finish(plan, "a"))
    assert releases.find_ready() == []
