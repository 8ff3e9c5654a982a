"""Compare a large installation with one of a hundredth of its size: ``python -m tests.benchmarks.scale``.

``make bench-scale`` runs it. ``WATCHER_BENCHMARK_SCALE`` is the share of 1,000,000 actions in 10,000 plans, 20,000
servers and 5,000,000 entries of history that the large installation has, such as 0.1 for a shorter run. Arguments
name parts: ``requests``, ``operations``, ``load``, ``appliers`` and ``retention``; without any, all parts run. Exits
with 1 if a limit is exceeded.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from urllib.parse import urlsplit

import django
import psycopg
from django.core.management import call_command
from django.db import connections

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import NotDurable, own_database, require_durability
from tests.benchmarks.scale.rows import Size, fill
from tests.benchmarks.table import Line, written
from watcher_site.processes.command_line import BAD_INPUT

PARTS = ("requests", "operations", "load", "appliers", "retention")
# The share of the rows that the small installation has, whatever the large one has.
HUNDREDTH = 0.01
# The actions of a large plan, at the full size.
LARGE_PLAN = 100_000
# The days after which plans and history are removed: a quarter of the rows is older.
RETENTION = {"WATCHER_ACTION_PLAN_DAYS": "274", "WATCHER_HISTORY_DAYS": "274"}


def read_parts(names: list[str]) -> list[str]:
    """Return the given parts, or all. Raises: ValueError for an unknown part."""
    if unknown := sorted(set(names) - set(PARTS)):
        raise ValueError(f"Unknown part: {', '.join(unknown)}. The parts are {', '.join(PARTS)}.")
    return names or list(PARTS)


def read_share(text: str) -> float:
    """Return the share of the rows. Raises: ValueError if it is not from a hundredth to 1."""
    problem = f"WATCHER_BENCHMARK_SCALE: must be a number from {HUNDREDTH} to 1, not {text}."
    try:
        share = float(text)
    except ValueError:
        raise ValueError(problem) from None
    if not HUNDREDTH <= share <= 1:
        raise ValueError(problem)
    return share


def run(parts: list[str], share: float) -> int:
    with ExitStack() as stack:
        urls = {name: stack.enter_context(own_database(name)) for name in ("small", "large")}
        require_durability(urls["large"])
        os.environ.update(environment(urls["large"]) | RETENTION)
        django.setup()
        logging.disable(logging.WARNING)
        for name, size in (("small", Size.of(HUNDREDTH)), ("large", Size.of(share))):
            prepare(urls[name], size)
        lines = list(measure(parts, urls, share))
        connections.close_all()
    print(written(lines))  # noqa: T201
    return 0 if all(line.met for line in lines) else 1


def prepare(url: str, size: Size) -> None:
    """Create the tables and the rows of an installation.

    PostgreSQL uses no parallel processes there: the time of these would be missing in the costs.
    """
    costs = import_module("tests.benchmarks.scale.costs")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {urlsplit(url).path[1:]} SET max_parallel_workers_per_gather = 0".encode())
    with costs.Installation("", url).in_use():
        call_command("migrate", verbosity=0)
    fill(url, size)


def measure(parts: list[str], urls: dict[str, str], share: float) -> Iterator[Line]:
    """Yield the lines of each part. The parts import models, which are already loaded."""
    costs, rows = import_module("tests.benchmarks.scale.costs"), import_module("tests.benchmarks.rows")
    small, large = (costs.Installation(name, url) for name, url in urls.items())
    for installation in (small, large):
        with installation.in_use():
            installation.token = rows.person()
    modules = {part: import_module(f"tests.benchmarks.scale.{part}") for part in parts}
    for part in {"requests", "operations"} & set(parts):
        for work in modules[part].works([small, large]):
            yield costs.compare(work, small, large).line()
    with large.in_use():
        if "load" in parts:
            yield from modules["load"].measure(large.token)
        if "appliers" in parts:
            yield from modules["appliers"].measure(urls["large"], max(int(LARGE_PLAN * share), 1000))
        if "retention" in parts:
            yield from modules["retention"].measure(large)


if __name__ == "__main__":
    try:
        sys.exit(run(read_parts(sys.argv[1:]), read_share(os.environ.get("WATCHER_BENCHMARK_SCALE", "1"))))
    except (NotDurable, ValueError) as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(BAD_INPUT)
