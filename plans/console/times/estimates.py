"""An estimate of the time until a running plan ends, from the durations of past actions of the same types."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from graphlib import CycleError, TopologicalSorter
from hashlib import blake2s
from statistics import median

from django.core.cache import cache

from actions.models import Action, ActionParent
from plans.models import ActionPlan

# The number of the latest successful actions of the types of a plan, and the seconds for which medians are cached.
SAMPLES = 2000
KEPT_FOR = 60
# In larger plans, the longest chain is not computed, because the number of processes determines the time.
MOST_CHAINED = 1000


def estimate_time_left(plan: ActionPlan, now: datetime) -> timedelta | None:
    """Return an estimate of the remaining time of a plan, with at most three queries.

    It is the maximum of the time of the longest chain of unfinished actions, and the time of all of them with the
    current number of parallel actions. The duration of an action is the median of its type.

    Returns:
        None while no action of the plan runs, or if no action of one of the types has succeeded yet.
    """
    if plan.state != ActionPlan.State.ONGOING or plan.is_suspended:
        return None
    columns = ("pk", "action_type", "state", "start_time")
    unfinished = list(plan.actions.unfinished().order_by("pk").values_list(*columns))
    running = sum(state in Action.BEGUN for _key, _type, state, _start in unfinished)
    if not running:
        return None
    medians = median_seconds({action_type for _key, action_type, *_others in unfinished})
    if any(action_type not in medians for _key, action_type, *_others in unfinished):
        return None
    left = {key: seconds_left(medians[action_type], start, now) for key, action_type, _state, start in unfinished}
    longest = longest_chain(plan, left) if len(left) <= MOST_CHAINED else 0.0
    return timedelta(seconds=max(longest, sum(left.values()) / running))


def seconds_left(seconds: float, start: datetime | None, now: datetime) -> float:
    """Return the remaining seconds of an action, given its total duration and its start time, if it has begun."""
    return max(seconds - (now - start).total_seconds(), 0.0) if start else seconds


def median_seconds(types: Iterable[str]) -> dict[str, float]:
    """Return the median duration, in seconds, of recent successful actions by type. Types without any are omitted."""
    names = sorted(types)
    key = f"median-durations-{blake2s(repr(names).encode()).hexdigest()}"
    found: dict[str, float] = cache.get_or_set(key, lambda: read_medians(names), KEPT_FOR) or {}
    return found


def read_medians(types: list[str]) -> dict[str, float]:
    succeeded = Action.objects.filter(action_type__in=types, state=Action.State.SUCCEEDED)
    timed = succeeded.filter(start_time__isnull=False, end_time__isnull=False).order_by("-pk")
    seconds: dict[str, list[float]] = defaultdict(list)
    for action_type, start, end in timed.values_list("action_type", "start_time", "end_time")[:SAMPLES]:
        seconds[action_type].append((end - start).total_seconds())
    return {action_type: median(found) for action_type, found in seconds.items()}


def longest_chain(plan: ActionPlan, seconds: Mapping[int, float]) -> float:
    """Return the seconds of the longest chain of these actions, each of which depends on the previous one."""
    parents: dict[int, list[int]] = {key: [] for key in seconds}
    links = ActionParent.objects.filter(child__action_plan=plan).exclude(child__state__in=Action.FINAL)
    for child, parent in links.values_list("child", "parent"):
        if child in seconds and parent in seconds:
            parents[child].append(parent)
    ends: dict[int, float] = {}
    try:
        for key in TopologicalSorter(parents).static_order():
            ends[key] = seconds[key] + max((ends[parent] for parent in parents[key]), default=0.0)
    except CycleError:
        return 0.0  # Actions in a cycle never begin.
    return max(ends.values(), default=0.0)
