"""How many actions a second one applier takes, with how many commits, and how much memory it needs."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from uuid import UUID, uuid4

import psycopg
from django.db import connections

from actions.models import Action
from actions.proposals import ProposedAction
from plans.models import ActionPlan
from plans.proposals import propose
from tests.benchmarks.table import Line

LAYERS = 32
SIZE = 1000
LARGE = 10_000
# In MB.
MEMORY = 150
# What the process itself does, whatever the number of actions: start, claim, beat, settle, leave.
CONSTANT_COMMITS = 50
RAW_UPDATES = 500


@dataclass(frozen=True)
class Run:
    """One plan run to its end: how many actions a second, how many commits in all, the largest memory in MB."""

    rate: float
    commits: int
    memory: float


def nop(*parents: UUID) -> ProposedAction:
    return ProposedAction("nop", {"message": "measured"}, parents, uuid4())


def independent(size: int) -> list[ProposedAction]:
    return [nop() for _ in range(size)]


def chain(size: int) -> list[ProposedAction]:
    actions = [nop()]
    for _ in range(size - 1):
        actions.append(nop(actions[-1].uuid))
    return actions


def layers(size: int) -> list[ProposedAction]:
    """Return as many layers as each is wide; each action has two parents in the layer before."""
    above = independent(size)
    actions = list(above)
    for _ in range(size - 1):
        above = [nop(left.uuid, right.uuid) for left, right in pairwise([*above, above[0]])]
        actions += above
    return actions


def measure(database: str) -> list[Line]:
    """Return the lines of each graph, beside the rate of raw updates that was taken around its run."""
    lines = []
    for work, graph in {
        f"{SIZE:,} independent nops": independent(SIZE),
        f"a chain of {SIZE:,} nops": chain(SIZE),
        f"{LAYERS} layers of {LAYERS} nops": layers(LAYERS),
    }.items():
        before = raw_rate(database)
        run = run_plan(database, graph)
        raw = median([before, raw_rate(database)])
        lines += [
            Line(f"applier: {work}", run.rate, "raw commits", raw, 0.1, unit="/s", at_least=True),
            Line("  commits", run.commits, "actions", len(graph), 2, "constant", CONSTANT_COMMITS, unit=""),
        ]
    large = run_plan(database, independent(LARGE))
    return [*lines, Line(f"applier: memory with {LARGE:,} actions", large.memory, "the limit", MEMORY, 1, unit="MB")]


def raw_rate(database: str) -> float:
    """Return how many single-row UPDATEs, each with its COMMIT, one connection takes a second."""
    keys = list(Action.objects.order_by("pk").values_list("pk", flat=True)[:RAW_UPDATES])
    with psycopg.connect(database) as connection:
        begin = time.perf_counter()
        for key in keys:
            connection.execute("UPDATE actions_action SET attempt = attempt WHERE id = %s", [key])
            connection.commit()
        return len(keys) / (time.perf_counter() - begin)


def run_plan(database: str, graph: Sequence[ProposedAction]) -> Run:
    """Have an applier of its own run a plan, and look at what became of each of its actions.

    Raises:
        RuntimeError: the plan or an action of it did not succeed.
    """
    plan = propose(graph)
    plan.launch()
    # Its own commits would be counted at any later time.
    connections.close_all()
    with psycopg.connect(database, autocommit=True) as connection:
        before = commits(connection)
        with applier() as process, connection.transaction():
            begin = wait_for(connection, plan, process, ActionPlan.State.PENDING)
            end = wait_for(connection, plan, process, ActionPlan.State.ONGOING)
            memory = peak_memory(process)
        after = commits(connection)
    verify(plan, len(graph))
    return Run(len(graph) / (end - begin), after - before, memory)


@contextmanager
def applier() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen([sys.executable, "manage.py", "run_applier"], stderr=subprocess.DEVNULL)
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
    """Return how many transactions of this server have written something, savepoints counted as well.

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


def verify(plan: ActionPlan, size: int) -> None:
    state = ActionPlan.objects.get(pk=plan.pk).state
    succeeded = plan.actions.filter(state=Action.State.SUCCEEDED).count()
    if state != ActionPlan.State.SUCCEEDED or succeeded != size:
        raise RuntimeError(f"The plan is {state}, with {succeeded} of {size} actions SUCCEEDED.")
