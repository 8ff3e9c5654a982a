"""``manage.py run_applier``: run the action plans that people start."""

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from plans.applier import Applier
from plans.executors import ThreadExecutor
from watcher_site import commands


def read_workers(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 1000, and is {text}")
    return int(text)


class Command(commands.Command):
    help = "Run the action plans that people start, until SIGTERM or SIGINT."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--workers",
            type=read_workers,
            default=settings.APPLIER_WORKERS,
            help="how many actions run at once (WATCHER_APPLIER_WORKERS)",
        )
        parser.add_argument(
            "--once", action="store_true", help="run every plan that waits or lost its applier, then exit"
        )

    def handle(self, *args: Any, workers: int, once: bool, **options: Any) -> None:
        applier = Applier(ThreadExecutor(workers))
        applier.stop_on_signals()
        applier.run(once=once)
