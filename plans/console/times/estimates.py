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

# The latest actions that succeeded, of all types of a plan together, and the seconds for which their medians are kept.
SAMPLES = 2000
KEPT_FOR = 60
# The longest chain of actions is found only among so many: beyond that, the number of processes decides anyhow.
MOST_CHAINED = 1000


def estimate_time_left(plan: ActionPlan, now: datetime) -> timedelta | None:
    """Return about how long a plan still takes, with at most three queries.

    It is the longer of two times: that of the longest chain of unfinished actions, and that of all of them if as many
    run at once as now. Each action counts with the median of its type.

    Returns:
        None while nothing of the plan runs, or if there is a type without any action that succeeded.
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
    """Return how long an action still takes that takes so many seconds altogether, and has perhaps begun."""
    return max(seconds - (now - start).total_seconds(), 0.0) if start else seconds


def median_seconds(types: Iterable[str]) -> dict[str, float]:
    """Return how long actions of these types took that succeeded recently; types without such actions are left out."""
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
    """Return the time of the longest chain of these actions, each of which waits for the one before it."""
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
        return 0.0  # Actions that wait for each other never begin.
    return max(ends.values(), default=0.0)
