"""The cost of a piece of work in installations of two sizes: time on processors, of this process and of PostgreSQL.

PostgreSQL has to run on this machine, since the time of its processes is read from the kernel. Both installations take
turns, and the least of several repetitions counts, so that other work of the machine affects neither.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import CaptureQueriesContext

from tests.benchmarks.table import Line

# How often each work is measured, and how often again if it costs more than the limit.
ROUNDS, MORE_ROUNDS = 3, 12
# The limit of the cost of a work, as a multiple of its cost with a hundredth of the rows.
LIMIT = 1.3
# Works whose costs grow with the rows, by patterns of their names, with limits of their own. The reasons are in
# docs/performance.md, "Large installations".
GROWING = {
    r"sort_key=status|sort=action,status": 100,
    r"sort=state,created_at": 60,
    r"/action_plans\?.*sort_key=(audit|strategy)_": 5,
    r"/audits\?.*sort_key=(audit_type|state|goal|strategy)": 3,
    r"/console/servers/\?sort=-?node": 2.5,
    r"/console/nodes/\?sort=-?(memory|disk)": 2,
    r"/console/actions/": 1.6,
    r"^search for": 4,
    r"trends": 4,
    r"^a scrape of": 4,
}


class Installation:
    """A database of one size, with the connection by which this process uses it, and a token of a person."""

    token = ""

    def __init__(self, name: str, url: str) -> None:
        self.name, self.url = name, url
        self.connection: BaseDatabaseWrapper = connections.create_connection("default")
        self.connection.settings_dict = {**self.connection.settings_dict, "NAME": url.rpartition("/")[2]}

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Use this database in the ORM during the block."""
        previous = connections["default"]
        connections["default"] = self.connection
        try:
            yield
        finally:
            connections["default"] = previous

    def seconds_of_server(self) -> float:
        """Return the processor time that the PostgreSQL process of the connection has used."""
        self.connection.ensure_connection()
        # A process that waits for its next statement has been accounted for.
        time.sleep(0.001)
        process: Any = self.connection.connection
        nanoseconds = Path(f"/proc/{process.info.backend_pid}/schedstat").read_text().split()[0]
        return int(nanoseconds) / 1e9


@dataclass(frozen=True)
class Work:
    """A measured operation: its function, and a function that prepares each repetition without being measured."""

    name: str
    perform: dict[str, Callable[[], Any]]
    prepare: dict[str, Callable[[], Any]] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        return next((limit for pattern, limit in GROWING.items() if re.search(pattern, self.name)), LIMIT)


@dataclass(frozen=True)
class Cost:
    """Processor time in milliseconds, of this process and of PostgreSQL, and the number of queries."""

    own: float
    server: float
    queries: int

    @property
    def total(self) -> float:
        return self.own + self.server


@dataclass(frozen=True)
class Comparison:
    """The costs of one work in a small and in a large installation."""

    work: Work
    small: Cost
    large: Cost

    @property
    def ratio(self) -> float:
        return self.large.total / self.small.total

    def line(self) -> Line:
        queries = f"{self.large.queries} queries"
        name = f"{self.work.name} ({queries})"
        return Line(name, self.large.total, "with a hundredth", self.small.total, self.work.limit)


def compare(work: Work, small: Installation, large: Installation) -> Comparison:
    """Measure a work in both installations, for longer if it seems to exceed the limit."""
    costs: dict[str, list[Cost]] = {small.name: [], large.name: []}
    queries: dict[str, int] = {}
    found = Comparison(work, Cost(1, 0, 0), Cost(2, 0, 0))
    for number in range(ROUNDS + MORE_ROUNDS):
        if number >= ROUNDS and found.ratio <= work.limit:
            break
        for installation in (small, large):
            with installation.in_use():
                perform = work.perform[installation.name]
                prepare = work.prepare.get(installation.name, lambda: None)
                if not number:
                    prepare()
                    queries[installation.name] = count_queries(perform)  # Fills caches, too.
                prepare()
                costs[installation.name].append(measure(perform, installation, queries[installation.name]))
        least = {name: min(found, key=lambda cost: cost.total) for name, found in costs.items()}
        found = Comparison(work, least[small.name], least[large.name])
    return found


def measure(perform: Callable[[], Any], installation: Installation, queries: int) -> Cost:
    server, own = installation.seconds_of_server(), time.process_time()
    perform()
    own = time.process_time() - own
    return Cost(1000 * own, 1000 * (installation.seconds_of_server() - server), queries)


def count_queries(perform: Callable[[], Any]) -> int:
    with CaptureQueriesContext(connection) as queries:
        perform()
    return len(queries)
