"""Prefetched children save queries, and no action begins too soon."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from random import Random

import pytest
from django.utils import timezone
from pytest_django import Settings

from actions.models import Action
from plans.applier.readiness import KEYS, Releases
from plans.models import ActionPlan
from tests.builders import action, make_plan

pytestmark = pytest.mark.django_db
Asserted = Callable[[int], AbstractContextManager[None]]


def set_state(plan: ActionPlan, name: str, state: str) -> int:
    found = action(plan, name)
    Action.objects.filter(pk=found.pk).update(state=state)
    return found.pk


def begin(plan: ActionPlan, *names: str) -> list[int]:
    return [set_state(plan, name, "ONGOING") for name in names]


def succeed(plan: ActionPlan, name: str) -> int:
    return set_state(plan, name, "SUCCEEDED")


def names(found: list[Action]) -> list[str]:
    return [one.input_parameters["message"] for one in found]


def test_the_end_of_one_whose_children_were_read_asks_nothing(django_assert_num_queries: Asserted) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    releases = Releases()
    releases.prefetched.read_children(begin(plan, "a"))
    releases.record_success(succeed(plan, "a"))
    assert releases
    with django_assert_num_queries(0):
        assert names(releases.find_ready()) == ["b"]
    assert not releases


def test_what_is_at_work_is_looked_at_once(django_assert_num_queries: Asserted) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    releases = Releases()
    at_work = begin(plan, "a")
    releases.prefetched.read_children(at_work)
    with django_assert_num_queries(0):
        releases.prefetched.read_children(at_work)


def test_a_child_of_two_waits_for_both(django_assert_num_queries: Asserted) -> None:
    plan = make_plan({"a": [], "b": [], "c": ["a", "b"]})
    releases = Releases()
    releases.next_recheck = float("inf")
    releases.prefetched.read_children(begin(plan, "a", "b"))
    first, second = succeed(plan, "a"), succeed(plan, "b")
    with django_assert_num_queries(0):
        releases.record_success(first)
        assert releases.find_ready() == []
        releases.record_success(second)
        assert names(releases.find_ready()) == ["c"]


def test_a_failure_asks_what_stands_in_the_table() -> None:
    """The actions that depend on the failed one may have ended with it."""
    plan = make_plan({"a": [], "b": ["a"]})
    releases = Releases()
    releases.prefetched.read_children(begin(plan, "a"))
    set_state(plan, "b", "CANCELLED")
    releases.record_end(set_state(plan, "a", "FAILED"))
    assert releases.find_ready() == []


def test_children_that_were_read_long_ago_are_queried_once_more(settings: Settings) -> None:
    settings.POLL_INTERVAL = 0
    plan = make_plan({"a": [], "b": ["a"]})
    releases = Releases()
    releases.prefetched.read_children(begin(plan, "a"))
    set_state(plan, "b", "SKIPPED")
    releases.record_success(succeed(plan, "a"))
    assert releases.find_ready() == []


def test_of_more_children_than_are_read_at_once_none_is_lost() -> None:
    children = [f"c{number}" for number in range(len(KEYS) + 1)]
    plan = make_plan({"a": [], **{name: ["a"] for name in children}})
    releases = Releases()
    releases.prefetched.read_children(begin(plan, "a"))
    releases.record_success(succeed(plan, "a"))
    found = []
    while releases:
        found += names(releases.find_ready())
    assert sorted(found) == sorted(children)


@pytest.mark.parametrize("looks", [True, False])
def test_a_deferred_action_is_not_released_before_its_time(looks: bool) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    Action.objects.filter(pk=action(plan, "b").pk).update(due_time=timezone.now() + timedelta(hours=1))
    releases = Releases()
    at_work = begin(plan, "a")
    if looks:
        releases.prefetched.read_children(at_work)
    releases.record_success(succeed(plan, "a"))
    assert releases.find_ready() == []


GRAPH = {
    **{name: [] for name in "abc"},
    "d": ["a", "b"],
    "e": ["b"],
    "f": ["a", "b", "c"],
    "g": ["d", "e", "f"],
    "h": ["e", "f"],
    "i": ["g"],
    "j": ["g", "h"],
}


@pytest.mark.parametrize("seed", range(8))
def test_whatever_was_read_when_and_reported_late_all_is_released_and_nothing_too_soon(
    seed: int, settings: Settings
) -> None:
    """Looks, ends and their reports come in any order that an applier may see them in."""
    settings.POLL_INTERVAL = 3600
    chance = Random(seed)  # noqa: S311 (chance, no secret)
    plan = make_plan(GRAPH)
    releases, ready, unreported, over = Releases(), list("abc"), [], set()
    at_work: dict[str, int] = {}
    while len(over) < len(GRAPH):
        releases.next_recheck = float("inf")
        move = chance.choice(["begin", "look", "end", "report", "find"])
        if move == "begin" and ready:
            name = ready.pop(chance.randrange(len(ready)))
            (at_work[name],) = begin(plan, name)
        elif move == "look":
            releases.prefetched.read_children([*at_work.values(), *(key for _, key in unreported)])
        elif move == "end" and at_work:
            name = chance.choice(list(at_work))
            unreported.append((name, succeed(plan, name)))
            del at_work[name]
            over.add(name)
        elif move == "report" and unreported:
            releases.record_success(unreported.pop(chance.randrange(len(unreported)))[1])
        elif move == "find":
            found = [name for name in names(releases.find_ready()) if name not in {*ready, *at_work, *over}]
            assert all(over.issuperset(GRAPH[name]) for name in found)
            ready += found
        assert ready or at_work or unreported or releases or len(over) == len(GRAPH)
