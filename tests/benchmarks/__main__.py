"""Run the benchmark: ``python -m tests.benchmarks``. Exits with 1 if a bound is missed or commits are not durable."""

import os
import secrets
import sys
import time
from importlib import import_module

import django
from django.core.management import call_command

from tests.benchmarks.database import NotDurable, own_database, require_durability
from tests.benchmarks.table import written


def environment(database: str) -> dict[str, str]:
    """Return the environment of production, except for TLS, which a proxy would terminate."""
    return {
        "DJANGO_SETTINGS_MODULE": "tests.benchmarks.settings",
        "DATABASE_URL": database,
        "SECRET_KEY": secrets.token_urlsafe(64),
        "ALLOWED_HOSTS": "127.0.0.1",
        "DEBUG": "false",
        "WATCHER_HTTPS": "false",
        "WATCHER_LOG_FORMAT": "json",
    }


def time_additions() -> float:
    """Return the seconds that 10,000,000 additions take in Python, to compare the processors of two machines."""
    begin, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - begin


def run() -> int:
    is_met = True
    with own_database() as database:
        durability = require_durability(database)
        print(", ".join(f"{name} {value}" for name, value in durability.items()))  # noqa: T201
        print(f"processor: 10,000,000 additions in {time_additions():.2f} s")  # noqa: T201
        os.environ.update(environment(database))
        django.setup()
        call_command("migrate", verbosity=0)
        # This module imports models, which could not be loaded before.
        for lines in import_module("tests.benchmarks.measurements").measure(database):
            print(f"\n{written(lines)}", flush=True)  # noqa: T201
            is_met = is_met and all(line.met for line in lines)
    return 0 if is_met else 1


if __name__ == "__main__":
    try:
        sys.exit(run())
    except NotDurable as problem:
        sys.exit(str(problem))
