"""Prefetched children of running actions: fewer queries, and no action begins before its parents ended."""

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


def test_completing_an_action_with_prefetched_children_needs_no_query(django_assert_num_queries: Asserted) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    releases = Releases()
    releases.prefetched.read_children(begin(plan, "a"))
    releases.record_success(succeed(plan, "a"))
    assert releases
    with django_assert_num_queries(0):
        assert names(releases.find_ready()) == ["b"]
    assert not releases


def test_running_actions_are_prefetched_once(django_assert_num_queries: Asserted) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    releases = Releases()
    running = begin(plan, "a")
    releases.prefetched.read_children(running)
    with django_assert_num_queries(0):
        releases.prefetched.read_children(running)


def test_child_of_two_parents_waits_for_both(django_assert_num_queries: Asserted) -> None:
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


def test_failure_reads_the_state_of_the_children_again() -> None:
    """A failure may have ended the actions that depend on the failed one."""
    plan = make_plan({"a": [], "b": ["a"]})
    releases = Releases()
    releases.prefetched.read_children(begin(plan, "a"))
    set_state(plan, "b", "CANCELLED")
    releases.record_end(set_state(plan, "a", "FAILED"))
    assert releases.find_ready() == []


def test_stale_prefetched_children_are_queried_again(settings: Settings) -> None:
    settings.POLL_INTERVAL = 0
    plan = make_plan({"a": [], "b": ["a"]})
    releases = Releases()
    releases.prefetched.read_children(begin(plan, "a"))
    set_state(plan, "b", "SKIPPED")
    releases.record_success(succeed(plan, "a"))
    assert releases.find_ready() == []


def test_children_beyond_the_prefetch_limit_are_released_too() -> None:
    children = [f"c{number}" for number in range(len(KEYS) + 1)]
    plan = make_plan({"a": [], **{name: ["a"] for name in children}})
    releases = Releases()
    releases.prefetched.read_children(begin(plan, "a"))
    releases.record_success(succeed(plan, "a"))
    found = []
    while releases:
        found += names(releases.find_ready())
    assert sorted(found) == sorted(children)


@pytest.mark.parametrize("is_prefetched", [True, False])
def test_deferred_child_is_not_released_before_its_due_time(is_prefetched: bool) -> None:
    plan = make_plan({"a": [], "b": ["a"]})
    Action.objects.filter(pk=action(plan, "b").pk).update(due_time=timezone.now() + timedelta(hours=1))
    releases = Releases()
    running = begin(plan, "a")
    if is_prefetched:
        releases.prefetched.read_children(running)
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
def test_each_action_is_released_after_its_parents_in_any_order_of_reads_and_reports(
    seed: int, settings: Settings
) -> None:
    """Reads, ends and reports of ends occur in every order that an applier may observe."""
    settings.POLL_INTERVAL = 3600
    chance = Random(seed)  # noqa: S311 (chance, no secret)
    plan = make_plan(GRAPH)
    releases, ready, unreported, over = Releases(), list("abc"), [], set()
    running: dict[str, int] = {}
    while len(over) < len(GRAPH):
        releases.next_recheck = float("inf")
        move = chance.choice(["begin", "prefetch", "end", "report", "find"])
        if move == "begin" and ready:
            name = ready.pop(chance.randrange(len(ready)))
            (running[name],) = begin(plan, name)
        elif move == "prefetch":
            releases.prefetched.read_children([*running.values(), *(key for _, key in unreported)])
        elif move == "end" and running:
            name = chance.choice(list(running))
            unreported.append((name, succeed(plan, name)))
            del running[name]
            over.add(name)
        elif move == "report" and unreported:
            releases.record_success(unreported.pop(chance.randrange(len(unreported)))[1])
        elif move == "find":
            found = [name for name in names(releases.find_ready()) if name not in {*ready, *running, *over}]
            assert all(over.issuperset(GRAPH[name]) for name in found)
            ready += found
        assert ready or running or unreported or releases or len(over) == len(GRAPH)
