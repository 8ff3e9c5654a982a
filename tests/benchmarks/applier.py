"""The rate of actions of one applier, with its commits and its memory."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from uuid import UUID, uuid4

import psycopg
from django.db import connections

from actions.graph.proposals import ProposedAction
from actions.models import Action
from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.benchmarks.table import Line

LAYERS = 32
SIZE = 1000
LARGE = 10_000
PLANS = 10
# The required share of the raw rate on one connection for each graph, and of the rate of a small plan for a large one.
SHARES = (1 / 5, 1 / 6, 1 / 6)
KEPT_RATE = 0.8
# Of an action of a large plan, in milliseconds.
PROCESSOR = 0.8
# In MB, with one large plan and with all.
MEMORY, MOST_MEMORY = 150, 300
# The commits of the process itself, for any number of actions: start, claim, heartbeat, settlement, retirement.
CONSTANT_COMMITS = 50
RAW_UPDATES = 500


@dataclass(frozen=True)
class Run:
    """The result of plans that ran to their end.

    It has the actions per second, the commits in total, the largest memory in MB, and the processor time of the
    process in seconds.
    """

    rate: float
    commits: int
    memory: float
    processor: float


def nop(*parents: UUID) -> ProposedAction:
    return ProposedAction("nop", {"message": "measured"}, parents, uuid4())


def independent(size: int) -> list[ProposedAction]:
    return [nop() for _ in range(size)]


def chain(size: int) -> list[ProposedAction]:
    actions = [nop()]
    for _ in range(size - 1):
        actions.append(nop(actions[-1].uuid))
    return actions


def compute_layers(size: int) -> list[ProposedAction]:
    """Return as many layers as each is wide; each action has two parents in the layer before."""
    above = independent(size)
    actions = list(above)
    for _ in range(size - 1):
        above = [nop(left.uuid, right.uuid) for left, right in pairwise([*above, above[0]])]
        actions += above
    return actions


def graphs() -> dict[str, list[ProposedAction]]:
    return {
        f"{SIZE:,} independent nops": independent(SIZE),
        f"a chain of {SIZE:,} nops": chain(SIZE),
        f"{LAYERS} layers of {LAYERS} nops": compute_layers(LAYERS),
    }


def measure(database: str) -> list[Line]:
    """Return the lines of each graph, with the rate of raw updates that was measured around its run."""
    lines, runs = [], []
    for (work, graph), share in zip(graphs().items(), SHARES, strict=True):
        before = raw_rate(database)
        run = run_plan(database, graph)
        raw = median([before, raw_rate(database)])
        runs.append(run)
        lines += [
            Line(f"applier: {work}", run.rate, "raw commits", raw, share, unit="/s", at_least=True),
            Line("  commits", run.commits, "actions", len(graph), 2, "constant", CONSTANT_COMMITS, unit=""),
        ]
    four = raw_rate(database, connections=4)
    lines.append(Line("raw commits on four connections", four, "on one", raw, 0, unit="/s", at_least=True))
    return [*lines, *measure_large(database, runs[0])]


def measure_large(database: str, small: Run) -> list[Line]:
    """Return the lines of a plan with ten times as many actions as the smaller plan, and of ten such plans."""
    large = run_plan(database, independent(LARGE))
    many = run_plans(database, [independent(LARGE) for _ in range(PLANS)], WATCHER_APPLIER_PLANS=str(PLANS))
    smaller, processor = f"with {SIZE:,}", 1000 * (large.processor - small.processor) / (LARGE - SIZE)
    return [
        Line(
            f"applier: {LARGE:,} independent nops",
            large.rate,
            smaller,
            small.rate,
            KEPT_RATE,
            unit="/s",
            at_least=True,
        ),
        Line("  processor time of each", processor, "the limit", PROCESSOR, 1),
        Line("  memory", large.memory, "the limit", MEMORY, 1, unit="MB"),
        Line(f"applier: memory with {PLANS} plans of {LARGE:,}", many.memory, "the limit", MOST_MEMORY, 1, unit="MB"),
    ]


def raw_rate(database: str, connections: int = 1) -> float:
    """Return the rate of single-row UPDATEs with COMMIT per second, of the given number of connections together."""
    keys = list(Action.objects.order_by("pk").values_list("pk", flat=True)[: RAW_UPDATES * connections])
    shares = [keys[place::connections] for place in range(connections)]
    with ExitStack() as stack, ThreadPoolExecutor(connections) as pool:
        opened = [stack.enter_context(psycopg.connect(database)) for _ in shares]
        begin = time.perf_counter()
        list(pool.map(update_raw, opened, shares))
        return len(keys) / (time.perf_counter() - begin)


def update_raw(connection: psycopg.Connection, keys: Sequence[int]) -> None:
    for key in keys:
        connection.execute("UPDATE actions_action SET attempt = attempt WHERE id = %s", [key])
        connection.commit()


def run_plan(database: str, graph: Sequence[ProposedAction], **environment: str) -> Run:
    return run_plans(database, [graph], **environment)


def run_plans(database: str, plans: Sequence[Sequence[ProposedAction]], **environment: str) -> Run:
    """Run plans in an applier process, and check the result of each of their actions.

    Its environment is this one's, with some more variables. The time runs from the first plan's beginning to the end
    of the last.

    Raises:
        RuntimeError: a plan or an action of it did not succeed.
    """
    proposed = [propose(graph) for graph in plans]
    for plan in proposed:
        plan.launch()
    # At any later time the commits of this function would be counted.
    connections.close_all()
    with psycopg.connect(database, autocommit=True) as connection:
        before = commits(connection)
        with applier(**environment) as process, connection.transaction():
            begin = wait_for(connection, proposed[0], process, ActionPlan.State.PENDING)
            for plan in proposed:
                wait_for(connection, plan, process, ActionPlan.State.PENDING)
                end = wait_for(connection, plan, process, ActionPlan.State.ONGOING)
            memory, processor = peak_memory(process), processor_seconds(process)
        after = commits(connection)
    for plan, graph in zip(proposed, plans, strict=True):
        verify(plan, len(graph))
    return Run(sum(map(len, plans)) / (end - begin), after - before, memory, processor)


@contextmanager
def applier(**environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "manage.py", "run_applier"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


def wait_for(
    connection: psycopg.Connection, plan: ActionPlan, process: "subprocess.Popen[bytes]", state: str
) -> float:
    """Return the time at which a plan left a state. Within a transaction this adds no commits of its own."""
    query = "SELECT state FROM plans_actionplan WHERE id = %s"
    while connection.execute(query, [plan.pk]).fetchone() == (state,):
        if process.poll() is not None:
            raise RuntimeError(f"The applier left with status {process.returncode}.")
        time.sleep(0.01)
    return time.perf_counter()


def commits(connection: psycopg.Connection) -> int:
    """Return the number of transactions of this server that have written, including savepoints.

    PostgreSQL gives a transaction a number when it first writes. One that only read has nothing to make durable: its
    end costs no flush, and is not counted.
    """
    query = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
    return int(connection.execute(query).fetchone()[0])  # type: ignore[index]


def peak_memory(process: "subprocess.Popen[bytes]") -> float:
    """Return the largest resident memory that a process ever had, in MB."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


def processor_seconds(process: "subprocess.Popen[bytes]") -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def verify(plan: ActionPlan, size: int) -> None:
    state = ActionPlan.objects.get(pk=plan.pk).state
    succeeded = plan.actions.filter(state=Action.State.SUCCEEDED).count()
    if state != ActionPlan.State.SUCCEEDED or succeeded != size:
        raise RuntimeError(f"The plan is {state}, with {succeeded} of {size} actions SUCCEEDED.")
