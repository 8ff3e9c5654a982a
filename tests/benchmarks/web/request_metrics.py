"""The cost of the metrics of requests: processor time of reads with and without the middleware that counts them.

``python -m tests.benchmarks.web.request_metrics`` measures it alone.
"""

import os
import sys
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from statistics import median

import django
from django.core.management import call_command

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import own_database
from tests.benchmarks.table import Line, written

WARM_UP, ROUNDS = 100, 3000
VARIANTS = {"with": "true", "without": "false"}


def processor_milliseconds(server: int) -> float:
    """Return the processor time of the one worker of a gunicorn server."""
    (worker,) = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    threads = Path(f"/proc/{worker}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6


def measure(token: str) -> list[Line]:
    """Return the line of the cost. Each round measures both servers in turn.

    The processor time of a request is read before the next one, when its worker has also written its access log.
    """
    web = import_module("tests.benchmarks.web.client")
    actions = import_module("actions.models").Action.objects
    calls = [
        web.Call(f"/v1/actions/{uuid}", web.with_token(token)) for uuid in actions.values_list("uuid", flat=True)[:100]
    ]
    costs: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with ExitStack() as stack:
        clients = {
            name: stack.enter_context(web.served(WATCHER_BENCHMARK_METRICS=switch))
            for name, switch in VARIANTS.items()
        }
        used = dict.fromkeys(VARIANTS, 0.0)
        for number in range(WARM_UP + ROUNDS):
            for name, client in clients.items():
                before, used[name] = used[name], processor_milliseconds(client.server)
                costs[name].append(used[name] - before)
                client.seconds(calls[number % len(calls)])
    measured, reference = (median(costs[name][WARM_UP:]) for name in VARIANTS)
    return [Line("GET /v1/actions/{uuid}, processor, with metrics", measured, "without", reference, 1.05)]


def run() -> int:
    with own_database() as database:
        os.environ.update(environment(database))
        django.setup()
        call_command("migrate", verbosity=0)
        rows = import_module("tests.benchmarks.rows")
        token = rows.person()
        rows.fill()
        lines = measure(token)
    print(written(lines))  # noqa: T201
    return 0 if all(line.met for line in lines) else 1


if __name__ == "__main__":
    sys.exit(run())
