"""``manage.py run_worker``: run a worker, which executes the actions of queues."""

import os
import sys
from contextlib import suppress
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.management.base import CommandParser
from django.db import connections

from plans.management.commands.run_applier import read_workers
from watcher_site.models import Service
from watcher_site.monitoring.server import require_ports
from watcher_site.processes import commands
from watcher_site.processes.worker import LOST_DATABASE
from watcher_site.refusals import Invalid


class Command(commands.Command):
    help = "Execute the actions that appliers send through the message broker, until SIGTERM or SIGINT."
    acts_for_person = False
    requires_migrations_checks = True

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--workers",
            type=read_workers,
            default=settings.WORKER_PROCESSES,
            help="the number of processes, each of which executes one action (WATCHER_WORKER_PROCESSES)",
        )
        parser.add_argument(
            "--queues",
            default=",".join(settings.WORKER_QUEUES),
            help="the queues whose actions it executes (WATCHER_WORKER_QUEUES, default: all)",
        )

    def check_migrations(self) -> None:
        # A worker waits until the database is available.
        with suppress(*LOST_DATABASE):
            super().check_migrations()

    def handle(self, *args: Any, workers: int, queues: str, **options: Any) -> None:
        if settings.EXECUTOR != "celery":
            raise Invalid("WATCHER_EXECUTOR: must be celery, because otherwise workers receive no actions.")
        # Requires the extra [celery].
        from watcher_site.celery import app, queue_names

        chosen = [name.strip() for name in queues.split(",") if name.strip()] or queue_names()
        if unknown := sorted(set(chosen) - set(queue_names())):
            raise Invalid(
                f"WATCHER_WORKER_QUEUES: no actions are sent to {', '.join(unknown)}, only to"
                f" {', '.join(queue_names())} (WATCHER_CELERY_QUEUE, WATCHER_CELERY_QUEUES)."
            )
        require_ports(Service.WORKER, workers)
        # Forked processes must not share connections.
        connections.close_all()
        worker = app.Worker(
            hostname=f"{uuid4()}@{settings.HOST}",
            concurrency=workers,
            pool="prefork",
            optimization="fair",
            queues=chosen,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            quiet=True,
        )
        worker.start()
        sys.exit(worker.exitcode or os.EX_OK)
