"""The duration and the memory of one decision: ``python -m tests.benchmarks.decisions``.

Exits with 1 where a bound is missed. With a day of traces (``--day``, or the environment variable of the replay) the
decisions over its cloud are measured as well, from the tables to the plan.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import own_database
from tests.benchmarks.table import Line, written

VARIABLE = "WATCHER_BENCHMARK_DAY"
STEP = 144
# In ms and in MB; how much more than ten times the cost ten times the servers may have.
DURATION, MEMORY, GROWTH = 1000, 300, 2
# In ms, for the given number of pending servers.
MAKE_ROOM, WAITING = 2000, 100
ROUNDS = 3
NODES = (10, 100, 1000)
BY_USE, BALANCING = "server_consolidation", "workload_balancing"
# Parameters that enable all functions of each strategy.
WORKS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("basic", BY_USE, {}),
    ("vm_workload_consolidation", BY_USE, {}),
    ("node_resource_consolidation", BY_USE, {"host_choice": "specify"}),
    ("workload_balance", BALANCING, {"threshold": 5}),
    ("workload_stabilization", BALANCING, {"thresholds": {"instance_cpu_usage": 0.0}}),
    (
        "workload_stabilization",
        BALANCING,
        {"thresholds": {"instance_cpu_usage": 0.0}, "host_choice": "fullsearch"},
    ),
)


def growth() -> Iterator[Line]:
    """Yield the processor time of each strategy at each size, in this process."""
    clouds, plugins, parameters = (
        import_module(name)
        for name in ("tests.benchmarks.clouds", "watcher_site.plugins", "audits.operations.strategies")
    )
    seen = {nodes: clouds.cloud(nodes) for nodes in NODES}
    for name, _, given in WORKS:
        strategy = plugins.load("STRATEGIES")[name]()
        completed = parameters.complete(strategy.schema, given)
        before = 0.0
        for nodes, cluster in seen.items():
            cost = min(processor_time(strategy, cluster, completed) for _ in range(ROUNDS))
            work = f"{title(name, given)}: {len(cluster.servers):,} servers on {nodes:,} nodes"
            yield Line(work, cost, "ten times fewer", 10 * before or cost, GROWTH if before else 1, unit="ms CPU")
            before = cost


def capacity() -> Iterator[Line]:
    """Yield the cost of planning capacity for a hundred servers at once: by the strategy, and by the planner."""
    clouds, plugins, planners = (
        import_module(name) for name in ("tests.benchmarks.clouds", "watcher_site.plugins", "audits.planner")
    )
    costs = []
    for _ in range(ROUNDS):
        cluster = clouds.crowded(nodes=max(NODES), waiting=WAITING)
        begin = time.process_time()
        solution = plugins.load("STRATEGIES")["make_room"]().solve(cluster, {})
        planners.PLANNERS["explicit"](solution.actions)
        costs.append(1000 * (time.process_time() - begin))
    found = solution.indicators
    work = (
        f"make_room: {WAITING} servers wait on {max(NODES):,} full nodes; {found['served_servers_count']} served, "
        f"{found['instance_migrations_count']} moved, {found['deleted_servers_count']} deleted"
    )
    yield Line(work, min(costs), "the limit", MAKE_ROOM, 1, unit="ms CPU")


def title(name: str, given: Mapping[str, Any]) -> str:
    choice = given.get("host_choice")
    return f"{name}, {choice}" if choice else name


def processor_time(strategy: Any, cluster: Any, parameters: Mapping[str, Any]) -> float:
    begin = time.process_time()
    strategy.solve(cluster, parameters)
    return 1000 * (time.process_time() - begin)


def whole(day: Path) -> Iterator[Line]:
    """Yield the costs of a decision for the cloud of a day: snapshot, measurements, strategy, planner, plan."""
    planetlab, sites = (import_module(name) for name in ("cluster.topology.planetlab", "tests.benchmarks.replay.site"))
    servers, _ = planetlab.load_planetlab(day, STEP)
    site = sites.Site()
    for name, goal, given in WORKS:
        spans: list[Any] = []
        for _ in range(ROUNDS):
            with sites.took(spans):
                site.decide(name, goal, given, auto_trigger=False)
        work = f"{title(name, given)}: {planetlab.HOSTS} nodes, {servers:,} servers"
        yield Line(work, 1000 * min(span.wall for span in spans), "the limit", DURATION, 1)
        yield Line("  of it this process", 1000 * min(span.processor for span in spans), "the limit", DURATION, 1)
    for name, goal, given in WORKS:
        site.ask(name, goal, given, auto_trigger=False)
    site.stop()
    yield Line("memory of a decision engine that took each of these", memory(), "the limit", MEMORY, 1, unit="MB")


def memory() -> float:
    """Return the largest resident memory of a decision engine that runs all pending audits, in MB.

    Raises:
        RuntimeError: it failed.
    """
    process = subprocess.Popen([sys.executable, "manage.py", "run_decision_engine", "--once"])
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"The decision engine left with status {status}.")
    return used.ru_maxrss / 1024


def run(day: str) -> int:
    with own_database() as database:
        os.environ.update(environment(database) | {"WATCHER_LOG_LEVEL": "ERROR"})
        django.setup()
        call_command("migrate", verbosity=0)
        lines = [*(whole(Path(day)) if day else []), *growth(), *capacity()]
    print(written(lines))  # noqa: T201
    return 0 if all(line.met for line in lines) else 1


if __name__ == "__main__":
    given = sys.argv[2] if sys.argv[1:2] == ["--day"] and len(sys.argv) == 3 else os.environ.get(VARIABLE, "")
    sys.exit(run(given))
