"""Kill processes at random while they execute plans: ``python -m tests.chaos``. Exits with 1 if a check fails."""

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import django
from django.core.management import call_command

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import own_database

if TYPE_CHECKING:
    from tests.chaos.process_killer import Report


def run(arguments: argparse.Namespace) -> int:
    with own_database() as database, TemporaryDirectory() as folder:
        os.environ.update({**environment(database), "WATCHER_EMBEDDED_CLOUD_SECONDS": "0"})
        django.setup()
        call_command("migrate", verbosity=0)
        # These modules import models, which cannot be loaded before the set-up.
        change_records, consistency, races = (
            import_module(f"tests.chaos.{name}") for name in ("change_records", "consistency", "races")
        )
        change_records.create_triggers()
        report = kill_processes(arguments, Path(folder))
        failures = consistency.find_failures()
        race_results = races.run_all(arguments.rounds)
    print(race_results, report, *failures, sep="\n")  # noqa: T201
    return 1 if failures else 0


def kill_processes(arguments: argparse.Namespace, folder: Path) -> "Report":
    """Run plans while appliers are killed, or also workers and their broker."""
    from tests.chaos.broker import OwnBroker
    from tests.chaos.broker_faults import BrokerFaults
    from tests.chaos.process_group import ProcessGroup
    from tests.chaos.process_killer import kill_processes

    appliers, log = [["manage.py", "run_applier"]] * arguments.appliers, folder / "log"
    deadline = float(arguments.actions)
    if not arguments.workers:
        with ProcessGroup(appliers, log, {}) as processes:
            return kill_processes(processes, arguments.actions, arguments.seed, deadline)
    workers = [["manage.py", "run_worker", "--workers=2"]] * arguments.workers
    with OwnBroker(folder) as broker, ProcessGroup([*appliers, *workers], log, broker.site_environment) as processes:
        faults = BrokerFaults(broker, "watcher", arguments.seed)
        report = kill_processes(processes, arguments.actions, arguments.seed, deadline, cause_fault=faults.cause)
        faults.finish()
    return report


def read_arguments() -> argparse.Namespace:
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
    sys.exit(run(read_arguments()))
