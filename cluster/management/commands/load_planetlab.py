"""``manage.py load_planetlab DAY.csv.gz``: fill the embedded cloud with servers and samples of PlanetLab."""

import re
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from cluster.json_lines import InvalidValue
from cluster.topology.planetlab import load_planetlab
from watcher_site.history import record
from watcher_site.processes import commands
from watcher_site.refusals import Invalid

MINUTES = 5


def step_of(text: str) -> int:
    """Return the index of the day's last sample at a time such as 14:30."""
    match = re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", text)
    if not match:
        raise ArgumentTypeError("must be a time of the day such as 14:30")
    return (int(match[1]) * 60 + int(match[2])) // MINUTES


@transaction.atomic
def load(file: Path, at: int) -> tuple[int, int]:
    servers, samples = load_planetlab(file, at)
    record("planetlab.load", file.name, details={"servers": servers, "samples": samples})
    return servers, samples


class Command(commands.Command):
    help = (
        "Fill the embedded cloud with 800 hosts and a server for each PlanetLab trace, with its use of the processor."
    )
    refusal_prefix = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="a day of traces; docs/metrics.md describes the format")
        parser.add_argument("--at", type=step_of, default="12:00", help="the time of that day that is now (12:00)")

    def handle(self, *args: Any, file: Path, at: int, **options: Any) -> None:
        try:
            servers, samples = load(file, at)
        except InvalidValue as problem:
            raise Invalid(f"{file}: conflicts with existing objects: {problem}") from problem
        self.stdout.write(f"{servers} servers, {samples} samples")
