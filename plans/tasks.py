"""The Celery task, and the life of the processes that execute it: each is a worker of its own among the services."""

import mmap
from typing import Any

from celery.signals import setup_logging, worker_process_init, worker_process_shutdown, worker_shutting_down
from django.conf import settings

from plans.workers.messages import TASK, JobMessage
from plans.workers.process import WorkerProcess
from watcher_site.celery import app

# Shared with the processes that are forked later. A handler of a signal may write to it: no lock is taken.
STOPPING = mmap.mmap(-1, 1)
process = WorkerProcess(settings.HOST, lambda: STOPPING[0] != 0)


@app.task(name=TASK, ignore_result=True)
def work(**message: Any) -> None:
    process.take(JobMessage.of(message))


@worker_process_init.connect
def begin_process(**_: Any) -> None:
    process.begin()


@worker_process_shutdown.connect
def end_process(**_: Any) -> None:
    process.end()


@worker_shutting_down.connect
def note_stopping(**_: Any) -> None:
    STOPPING[0] = 1


@setup_logging.connect
def keep_logging(**_: Any) -> None:
    """Keep the site's logging: Celery does not configure its own if this signal has a receiver."""
