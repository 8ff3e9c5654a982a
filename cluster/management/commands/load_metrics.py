"""``manage.py load_metrics FILE``: store samples of metrics in the site's database."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.db import transaction

from cluster.datasources.loading import load_metrics
from watcher_site.history import record
from watcher_site.processes import commands


class Command(commands.Command):
    help = "Load samples of metrics from JSON lines or CSV. A file may be loaded again."
    refusal_prefix = ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the samples; docs/metrics.md describes the format")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        self.stdout.write(f"{load(file)} samples")


@transaction.atomic
def load(file: Path) -> int:
    samples = load_metrics(file)
    record("metrics.load", file.name, details={"samples": samples})
    return samples
