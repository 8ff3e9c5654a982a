"""The layers of a plan: a layer contains the actions with the same length of the longest path to them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache as remembered

from django.core.cache import cache

from actions.console.descriptions import order_state_counts
from actions.models import ActionParent
from plans.models import ActionPlan

# The largest number of edges that are added for one derived action.
MOST_STARTS = 50
Edge = tuple[int, int]


@dataclass
class Layer:
    """A row of the overview of a large plan."""

    number: int
    counts: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def layers_of(plan: ActionPlan) -> dict[int, int]:
    """Return the layers of a plan's actions, counted from 0, by the keys of the actions."""
    return find_layers(plan, list(plan.actions.present().values_list("pk", "derived_from", "has_derived")))


def count_layers(plan: ActionPlan) -> list[Layer]:
    rows = list(plan.actions.present().values_list("pk", "derived_from", "has_derived", "state"))
    places = find_layers(plan, [row[:3] for row in rows])
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    for (place, state), number in Counter((places.get(key, 0), state) for key, *_, state in rows).items():
        counts[place][state] = number
    return [Layer(number + 1, order_state_counts(counts[number])) for number in sorted(counts)]


def find_layers(plan: ActionPlan, rows: Sequence[tuple[int, int | None, bool]]) -> dict[int, int]:
    """Return the layers of a plan's actions, from the cache if the graph of the plan has not changed.

    Args:
        rows: the key of each action, the key of its origin, and whether it has derived actions.
    """

    def find() -> dict[int, int]:
        return compute_layers(
            [key for key, *_ in rows], with_derived_edges(edges_of(plan), {key: origin for key, origin, _ in rows})
        )

    # Dependencies change only with the plan itself, or when an action derives others.
    waiting = sum(has_derived for *_, has_derived in rows)
    version = f"{len(rows)}-{waiting}-{plan.updated_at and plan.updated_at.timestamp()}"
    return cache.get_or_set(f"layers-of-plan-{plan.uuid}-{version}", find, 3600) or {}


def edges_of(plan: ActionPlan) -> list[tuple[int, int]]:
    links = ActionParent.objects.filter(child__action_plan=plan)
    return list(links.values_list("parent_id", "child_id"))


def compute_layers(keys: Iterable[int], edges: Iterable[Edge]) -> dict[int, int]:
    """Return the layer of each key: the length of the longest path to it. Edges lead from parent to child."""
    children, waiting = defaultdict(list), Counter[int]()
    layer = dict.fromkeys(keys, 0)
    for parent, child in edges:
        children[parent].append(child)
        waiting[child] += 1
    ready = [key for key in layer if not waiting[key]]
    for key in ready:
        for child in children[key]:
            layer[child] = max(layer[child], layer[key] + 1)
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return layer


def parents_of(edges: Iterable[Edge]) -> dict[int, set[int]]:
    parents: dict[int, set[int]] = defaultdict(set)
    for parent, child in edges:
        parents[child].add(parent)
    return parents


def with_derived_edges(edges: Sequence[Edge], derived_from: Mapping[int, int | None]) -> list[Edge]:
    """Add edges to derived actions from the predecessors of their origins."""
    parents = parents_of(edges)

    @remembered
    def before(key: int) -> list[int]:
        own = sorted(parent for parent in parents.get(key, ()) if derived_from.get(parent) != key)
        origin = derived_from.get(key)
        return own[-MOST_STARTS:] if own or origin is None else before(origin)

    derived = [key for key, origin in derived_from.items() if origin is not None]
    return list(dict.fromkeys([*edges, *((parent, key) for key in derived for parent in before(key))]))
