"""Several concurrent appliers, and a large plan: rates, processor time of each action, and memory."""

import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg
from django.db import connections, transaction
from django.db.models import Max, Min

from plans.models import ActionPlan
from plans.planning.proposals import propose
from tests.benchmarks.applier import applier, independent, peak_memory, raw_rate, verify
from tests.benchmarks.scale.costs import LIMIT
from tests.benchmarks.table import Line
from watcher_site.models import Service

APPLIERS, RATE = 4, 2.5
# The actions of each of these plans, and of the plan to which a large one is compared.
ACTIONS = 2000
SMALLER = 1000
MEMORY = 300
# The limits for the start of appliers and for the run of plans, in seconds.
START, LONGEST = 120, 3600


def measure(database: str, large: int) -> list[Line]:
    """Return the lines of one and of several appliers, and of a plan with the given number of actions."""
    one_raw, several_raw = raw_rate(database), raw_rate(database, APPLIERS)
    raw = several_raw / one_raw
    one, one_cost, _memory = run(database, [ACTIONS])
    several, several_cost, _memory = run(database, [ACTIONS] * APPLIERS)
    work = f"{APPLIERS} appliers, {APPLIERS} plans of {ACTIONS:,} nops"
    factor = min(RATE, raw)
    _rate, small_cost, _memory = run(database, [SMALLER])
    rate, large_cost, memory = run(database, [large])
    return [
        Line(f"raw commits of {APPLIERS} connections", several_raw, "of one", one_raw, 0, unit="/s", at_least=True),
        Line(work, several, "one applier", one, factor, unit="/s", at_least=True),
        Line("  processor time of an action", several_cost, "one applier", one_cost, LIMIT),
        Line(f"a plan of {large:,} nops", rate, "", 0, 0, unit="/s", at_least=True),
        Line("  processor time of an action", large_cost, f"of {SMALLER:,}", small_cost, LIMIT),
        Line("  memory of the applier", memory, "the limit", MEMORY, 1, unit="MB"),
    ]


def run(database: str, sizes: list[int]) -> tuple[float, float, float]:
    """Run plans of independent nops, with an applier for each.

    Returns the actions per second from the first start to the last end, the processor time of an action in
    milliseconds, of the appliers and of PostgreSQL, and the largest memory of an applier in MB.
    """
    plans = [propose(independent(size)) for size in sizes]
    connections.close_all()
    with psycopg.connect(database, autocommit=True) as connection, ExitStack() as stack:
        processes = [stack.enter_context(applier(WATCHER_APPLIER_PLANS="1")) for _ in plans]
        wait_until(lambda: Service.objects.active().filter(name=Service.APPLIER).count() >= len(plans), START)
        before = used(connection, processes)
        with transaction.atomic():
            for plan in plans:
                plan.launch()
        keys = [plan.pk for plan in plans]
        wait_until(lambda: not ActionPlan.objects.filter(pk__in=keys).exclude(state="SUCCEEDED").exists(), LONGEST)
        cost = used(connection, processes) - before
        memory = max(map(peak_memory, processes))
    for plan, size in zip(plans, sizes, strict=True):
        verify(plan, size)
    times = ActionPlan.objects.filter(pk__in=keys).aggregate(begin=Min("start_time"), end=Max("end_time"))
    number = sum(sizes)
    return number / (times["end"] - times["begin"]).total_seconds(), 1000 * cost / number, memory


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Raise `TimeoutError` if a condition does not hold after the given number of seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("The appliers did not start, or the plans did not end.")
        time.sleep(0.25)


def used(connection: psycopg.Connection, processes: list["subprocess.Popen[bytes]"]) -> float:
    """Return the seconds of processor time of these processes and of the server's for the connections of others."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    servers = [pid for (pid,) in connection.execute(query)]
    return sum(map(processor_seconds, [*servers, *(process.pid for process in processes)]))


def processor_seconds(pid: int) -> float:
    """Return the processor time of all threads of a process, or 0 if it has ended."""
    seconds = 0.0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            seconds += int(path.read_text().split()[0]) / 1e9
    return seconds
