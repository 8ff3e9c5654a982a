"""Replay a day with each set of audits, and print the cost of the day."""

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

import django
from django.core.management import call_command

from tests.benchmarks.__main__ import environment
from tests.benchmarks.database import own_database

VARIABLE = "WATCHER_BENCHMARK_DAY"
STEPS = 288


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.replay", description=__doc__)
    parser.add_argument("--day", type=Path, default=os.environ.get(VARIABLE), help=f"the traces; or {VARIABLE}")
    parser.add_argument("--steps", type=int, default=STEPS, help="how many steps of five minutes (all of the day)")
    parser.add_argument("--way", action="append", help="name of a set of audits in the table; may be repeated (all)")
    parser.add_argument("--memory-factor", type=float, default=1, help="how many times the memory the hosts have (1)")
    parser.add_argument("--straight", action="store_true", help="apply plans without the applier, which is faster")
    parser.add_argument("--vcpu-ratio", type=float, help="how many times its vcpus a host may promise (the paper's 4)")
    found = parser.parse_args()
    if not found.day or not Path(found.day).is_file():
        parser.error(f"--day or {VARIABLE} must be a file with a day of traces.")
    if not 1 <= found.steps <= STEPS:
        parser.error(f"--steps must be from 1 to {STEPS}.")
    return found


def run(wanted: argparse.Namespace) -> None:
    replaying, days, sites, straight = (
        import_module(f"tests.benchmarks.replay.{name}") for name in ("run", "day", "site", "straight")
    )
    make_site = straight.StraightSite if wanted.straight else sites.Site
    day = days.Day(wanted.day, wanted.memory_factor, wanted.vcpu_ratio)
    write(replaying.HEADS)
    write(["---"] * len(replaying.HEADS))
    for way in replaying.WAYS:
        if not wanted.way or way.name in wanted.way:
            write([way.name, *replaying.replay(day, way, wanted.steps, make_site).cells()])


def write(cells: list[str]) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)  # noqa: T201


if __name__ == "__main__":
    wanted = arguments()
    with own_database() as database:
        os.environ.update(environment(database))
        os.environ |= {
            "WATCHER_EMBEDDED_CLOUD_SECONDS": "0",
            "WATCHER_LOG_LEVEL": "ERROR",
            "WATCHER_DATASOURCE": "tests.benchmarks.replay.samples.ReplayedSamples",
        }
        django.setup()
        call_command("migrate", verbosity=0)
        run(wanted)
        sys.exit(0)
