"""Kill processes at random while they execute plans: ``python -m tests.chaos``. Exits with 1 if a check fails."""

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import django
from django.core.management import call_command

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import own_database


def run(arguments: argparse.Namespace) -> int:
    with own_database() as database, TemporaryDirectory() as folder:
        os.environ.update({**environment(database), "WATCHER_EMBEDDED_CLOUD_SECONDS": "0"})
        django.setup()
        call_command("migrate", verbosity=0)
        # These modules import models, which cannot be loaded before the set-up.
        fleet, storm, effects, verdict, contests = (
            import_module(f"tests.chaos.{name}") for name in ("fleet", "storm", "effects", "verdict", "contests")
        )
        effects.watch()
        weather = rage(arguments, Path(folder), fleet.Fleet, storm.rage)
        complaints = verdict.complaints()
        outcomes = contests.run_all(arguments.rounds)
    print(outcomes, weather, *complaints, sep="\n")  # noqa: T201
    return 1 if complaints else 0


def rage(arguments: argparse.Namespace, folder: Path, fleet: Any, storm: Any) -> Any:
    """Kill appliers alone, or also workers and their broker, and return the numbers of both."""
    appliers, log = [["manage.py", "run_applier"]] * arguments.appliers, folder / "log"
    patience = float(arguments.actions)
    if not arguments.workers:
        with fleet(appliers, log, {}) as processes:
            return storm(processes, arguments.actions, arguments.seed, patience)
    broker = import_module("tests.chaos.broker")
    workers = [["manage.py", "run_worker", "--workers=2"]] * arguments.workers
    with broker.OwnBroker(folder) as own, fleet([*appliers, *workers], log, own.environment_of_the_site) as processes:
        post = broker.BadPost(own, "watcher", arguments.seed)
        weather = storm(processes, arguments.actions, arguments.seed, patience, trouble=post.trouble)
        post.end()
    return weather


def read() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--actions", type=int, default=20_000, help="the number of actions (%(default)s)")
    parser.add_argument("--appliers", type=int, default=2, help="the number of appliers (%(default)s)")
    parser.add_argument(
        "--workers",
        type=int,
        default=0,
        help="the number of run_worker processes, with their own RabbitMQ server (%(default)s)",
    )
    parser.add_argument("--rounds", type=int, default=5_000, help="the rounds of each race (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the random choices (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(run(read()))
