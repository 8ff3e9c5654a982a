"""One replay: at each step of the day an audit runs, its plan is applied, and the next samples are read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from cluster.topology.planetlab import STEP
from tests.benchmarks.replay.account import Account
from tests.benchmarks.replay.day import Day
from tests.benchmarks.replay.samples import ReplayedSamples
from tests.benchmarks.replay.site import Site, Took, took


@dataclass(frozen=True)
class Way:
    """The audits that run at each step, one after the other. With ``switching`` hosts sleep only when switched off."""

    name: str
    audits: Sequence[tuple[str, str, Mapping[str, Any]]] = ()
    switching: bool = False


WAYS = (
    Way("nothing"),
    Way("basic", [("basic", "server_consolidation", {})]),
    Way("vm_workload_consolidation", [("vm_workload_consolidation", "server_consolidation", {})]),
    Way(
        "node_resource_consolidation, specify",
        [("node_resource_consolidation", "server_consolidation", {"host_choice": "specify"})],
    ),
    Way("node_resource_consolidation, auto", [("node_resource_consolidation", "server_consolidation", {})]),
    Way("workload_balance", [("workload_balance", "workload_balancing", {})]),
    Way("workload_stabilization", [("workload_stabilization", "workload_balancing", {})]),
    Way(
        "vm_workload_consolidation, then saving_energy",
        [("vm_workload_consolidation", "server_consolidation", {}), ("saving_energy", "saving_energy", {})],
        switching=True,
    ),
)


@dataclass
class Result:
    account: Account
    migrations: int = 0
    left: int = 0
    decisions: list[Took] = field(default_factory=list)
    applications: list[Took] = field(default_factory=list)
    whole: list[Took] = field(default_factory=list)

    def cells(self) -> list[str]:
        account = self.account
        walls = [decision.wall for decision in self.decisions] or [0.0]
        processors = [decision.processor for decision in self.decisions] or [0.0]
        return [
            f"{account.energy:,.1f}",
            f"{account.overload:.2f} %",
            f"{account.overload_by_host:.2f} %",
            f"{account.unserved_share:.3f} %",
            f"{account.active_hosts:.1f}",
            f"{self.migrations:,}",
            f"{self.left:,}",
            f"{1000 * fmean(walls):.0f}, {1000 * max(walls):.0f}",
            f"{1000 * fmean(processors):.0f}, {1000 * max(processors):.0f}",
            f"{sum(span.wall for span in self.applications):.0f}",
            f"{self.whole[0].wall:.0f}, {self.whole[0].processor:.0f}",
        ]


HEADS = (
    "way",
    "kWh",
    "overload",
    "by host",
    "unserved",
    "hosts",
    "migrations",
    "not done",
    "decide ms",
    "CPU ms",
    "apply s",
    "whole s, CPU s",
)


def replay(day: Day, way: Way, steps: int, make_site: Callable[[], Site] = Site) -> Result:
    """Replay the first ``steps`` steps of a day.

    The decision on an interval precedes the sample that ends it: a decision does not read later samples.
    """
    day.rewind()
    result = Result(Account(day.tables, STEP.total_seconds()))
    site = make_site()
    try:
        with took(result.whole):
            for step in range(steps):
                if step:
                    act(day, way, site, step - 1, result)
                idle = day.idle_hosts() if way.switching else ()
                result.account.add(day.demand(step), day.capacity, idle)
    finally:
        site.stop()
    return result


def act(day: Day, way: Way, site: Site, step: int, result: Result) -> None:
    ReplayedSamples.now = day.time(step)
    for strategy, goal, parameters in way.audits:
        with took(result.decisions):
            audit = site.decide(strategy, goal, parameters)
        with took(result.applications):
            site.apply()
        migrations, left = site.outcome(audit)
        result.migrations += migrations
        result.left += left
