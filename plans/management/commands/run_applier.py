"""``manage.py run_applier``: run an applier."""

import argparse
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from plans.applier.applier import Applier
from plans.executors import Executor, ThreadExecutor
from watcher_site.monitoring.server import serve_metrics
from watcher_site.monitoring.tracing import tracing
from watcher_site.processes import commands
from watcher_site.processes.main_loop import main_loop
from watcher_site.refusals import Invalid


def read_workers(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 1000, and is {text}")
    return int(text)


def make_executor(workers: int | None) -> Executor:
    """Return the executor of `settings.EXECUTOR`. Raises: `Invalid` if workers are given for another executor."""
    if settings.EXECUTOR == "threads":
        return ThreadExecutor(workers or settings.APPLIER_WORKERS)
    if workers is not None:
        raise Invalid("--workers: is for threads, and WATCHER_EXECUTOR is celery: give it to run_worker.")
    # Requires the extra [celery].
    from plans.workers.celery import CeleryExecutor

    return CeleryExecutor()


class Command(commands.Command):
    help = "Run started action plans until SIGTERM or SIGINT."
    acts_for_person = False
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--workers",
            type=read_workers,
            help="the number of threads for actions (WATCHER_APPLIER_WORKERS)",
        )
        parser.add_argument(
            "--once", action="store_true", help="run all plans that wait or have lost their applier, then exit"
        )

    def handle(self, *args: Any, workers: int | None, once: bool, **options: Any) -> None:
        executor = make_executor(workers)
        serve_metrics(Applier.kind, main_loop.find_problem)
        tracing.start(Applier.kind)
        applier = Applier(executor)
        applier.stop_on_signals()
        applier.run(once=once)
